// Decides where device-side gates go. At such a gate, the device itself waits and reads the control block.
//
//   driver's queue:   c1 … c9  R9 [G]  c10 … c17  [G]  c18 … c25  R25 [G]  c26 …
//
// R reports that everything before it has retired. At G the device waits while the control block says hold.
// While the pace is steady, not every gate reports: the report is a quarter of its cost.
// Closing the word stops the queue at its next gate, whatever the host has enqueued. So nothing bounds what
// is in flight, and a command costs only its share of a gate (some 3 µs of queue time).
//
// Gates are spaced in time: between two of them stand as many commands as run within the wanted latency. The
// pace comes from the reports. A held queue gets a gate in front of its next command at once (the tail gate).
//
// Pure, except for its lock: time and progress in, what to enqueue out. Thread-safe. While one thread uses
// it, another thread launches without a gate, but not if the queue is held. It is asked before and after
// every launch, and reading a clock costs as much as all the rest: so it gets a clock, and reads it only
// where progress has been seen.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "preempt/gates/pace.h"

namespace xsched::preempt {

class GateSpacing {
 public:
  struct Now {
    uint64_t retired;  // read after `hold`
    bool hold;         // the queue is held, or suspended
    bool gated;        // it may be held at any time
    bool pausable;     // a gate that is put now also waits for suspensions by the program
    bool telling;      // it also tells that the device has passed it; every pausable one does
    int64_t at_most;   // commands between two gates, at most
    Duration latency;  // wanted, from hold to stopped
    Clock clock;
  };

  enum class Place : uint8_t {
    kNothing,
    kGate,
    kGateThatReports,  // that everything before it has retired
  };
  struct Decision {
    Place place = Place::kNothing;
    // Commands before this one get nothing, if nothing of `now` changes. 0: ask for each.
    uint64_t quiet_until = 0;
  };
  // Command `number` (1, 2, …) is about to be enqueued. Returns what goes in front of it.
  Decision Before(uint64_t number, const Now& now);

  // Command `number` of a queue that others wait for has been enqueued. Returns whether a report is due.
  // `each`: every command reports, because only the launching thread can ask the driver. `clock` may be
  // rough.
  bool ReportAfter(uint64_t number, bool each, Clock clock);

  // Until everything up to this command has retired, the device may read or write the control block.
  uint64_t last_access() const;
  // A gate has been enqueued in front of command `number`, where the device may wait after its report. Or a
  // report has been enqueued behind it. `report`: what it says; 0: nothing.
  void Accesses(uint64_t number, uint64_t report);
  // The highest number that was enqueued to be reported.
  uint64_t last_report() const;

  // True if the device waits at a gate for the end of a suspension, or has nothing to do. `passed`
  // (kNonePassed: none) and `retired` are the device's reports.
  bool Stopped(uint64_t passed, uint64_t retired, uint64_t submitted) const;
  // While the queue is held: the last command that is not behind a closed gate. A gate that does not tell is
  // taken to be passed only when something behind it has retired.
  uint64_t OpenEnd(uint64_t passed, uint64_t retired, uint64_t submitted) const;

  void Reset();
  void ResetAfterFork();

 private:
  // The latest gates; what is older has been passed long since, or the queue is as good as
  // stopped.
  static constexpr uint32_t kRemembered = 2048;

  struct Gate {
    uint64_t position : 63;
    uint64_t pausable : 1;
  };

  void Observe(const Now& now, uint64_t before) REQUIRES(mutex_);
  int64_t Spacing(const Now& now) const REQUIRES(mutex_);
  uint64_t QuietUntil(int64_t spacing, const Now& now) const REQUIRES(mutex_);
  // The first of the remembered gates that is so. Null: none.
  template <typename Is>
  const Gate* FirstGate(Is&& is) const REQUIRES(mutex_);
  // The gate behind `before` commands must report.
  bool ReportIsDue(uint64_t before, int64_t spacing, const Now& now) const REQUIRES(mutex_);

  mutable Mutex<LockRank::kGateSpacing> mutex_;
  uint64_t last_gate_ GUARDED_BY(mutex_) = 0;  // the last gate is behind this command
  // The last gate that reports. If its report has not come, the device has not passed it, nor any later one.
  uint64_t last_reporting_gate_ GUARDED_BY(mutex_) = 0;
  uint64_t last_access_ GUARDED_BY(mutex_) = 0;
  uint64_t last_report_ GUARDED_BY(mutex_) = 0;
  std::atomic<TimePoint> last_report_at_{};  // of ReportAfter; written under mutex_
  bool any_gate_ GUARDED_BY(mutex_) = false;

  Pace pace_ GUARDED_BY(mutex_);
  uint64_t observed_retired_ GUARDED_BY(mutex_) = 0;
  TimePoint observed_at_ GUARDED_BY(mutex_){};
  bool observed_ GUARDED_BY(mutex_) = false;

  uint64_t count_ GUARDED_BY(mutex_) = 0;
  Gate gates_[kRemembered] GUARDED_BY(mutex_){};
};

}  // namespace xsched::preempt
