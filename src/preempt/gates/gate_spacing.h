// Where device-side gates go: those at which the device waits by itself, by reading the control block.
//
//   driver's queue:   c1 … c9  R9 [G]  c10 … c17  R17 [G]  c18 …
//
// R reports that all before it has retired; at G the device waits while the control block says hold. Closing
// the word stops the queue at its next gate, whatever the host has enqueued: so nothing bounds what is in
// flight, and a command costs nothing but its share of a gate (some 3 µs of queue time).
//
// Gates are spaced in time, not counted: as many commands between two as run within the wanted latency, by
// the pace that the reports show. A held queue gets one in front of its next command at once (the tail gate).
//
// Pure but for its lock: time and progress come in, what to enqueue comes out. Thread-safe; while one thread
// decides, another's launch goes without.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "preempt/gates/pace.h"

namespace xsched::preempt {

class GateSpacing {
 public:
  struct Now {
    uint64_t retired;
    bool hold;         // the queue is held, or suspended
    bool gated;        // it may be told to hold at any time
    bool pausable;     // a gate that is put now holds what the program suspends, too
    int64_t at_most;   // commands between two gates, at most
    Duration latency;  // wanted, from hold to stopped
    TimePoint time;
  };

  // Command `number` (1, 2, …) is about to be enqueued: does a gate go in front of it?
  bool GateBefore(uint64_t number, const Now& now);

  // Command `number` of a queue that others wait for has been enqueued: is a report due? Where nobody else
  // can ask the driver, each reports.
  bool ReportAfter(uint64_t number, bool each, TimePoint now);

  // The last command number that the device was asked to report: until then it may write.
  uint64_t last_report() const;
  // Something has been enqueued that reports up to `number`.
  void Reported(uint64_t number);

  // Does the device wait at a gate that holds what the program suspends, or has it nothing to do? `passed`
  // and `retired` as it reports them.
  bool Stopped(uint64_t passed, uint64_t retired, uint64_t submitted) const;

  void Reset();
  void ResetAfterFork();

 private:
  // The latest gates; what is older has been passed long since, or the queue is as good as
  // stopped.
  static constexpr uint32_t kRemembered = 2048;

  void Observe(const Now& now, uint64_t before);
  int64_t Spacing(const Now& now) const;

  mutable Mutex mutex_;
  uint64_t last_gate_ = 0;  // the last gate stands behind this command
  uint64_t last_report_ = 0;
  TimePoint last_report_at_{};
  bool any_gate_ = false;

  Pace pace_;
  uint64_t observed_retired_ = 0;
  TimePoint observed_at_{};
  bool observed_ = false;

  struct Gate {
    uint64_t position : 63;
    uint64_t pausable : 1;
  };
  uint32_t count_ = 0;
  Gate gates_[kRemembered]{};
};

}  // namespace xsched::preempt
