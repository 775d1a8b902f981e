// The scheduler: what is known of each queue, and who may run. Pure: events and time in, controls out. The
// same code runs in xserver, in a process with the local scheduler, and in the simulator.
//
// A queue's life, as the scheduler sees it:
//
//            first unfinished command                 all retired
//     idle ---------------------------> ready ----------------------------> lingering
//      ^                                  ^                                     |
//      |        grace period over         |          next command               |
//      +----------------------------------|-------------------------------------+
//                                         +-------------------------------------+
//
// A lingering queue still counts as ready for the policy: programs bound by launch cost have many small gaps.
// One that never comes back within the grace period has no such gaps, and does not linger.
//
// A queue that may run while others of its device are held is asked for its progress when nothing was heard
// of it. If it shows none for a bounded time it is *stalled*, and everybody runs for a while (watch.h). Each
// such episode is counted as an incident.
//
// Not thread-safe. Needs no libstdc++ at run time; if memory runs out, every queue runs.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "sched/core/policy.h"
#include "sched/core/types.h"

namespace xsched::sched {

struct SchedulerConfig {
  // How long a queue that has retired everything still counts as ready.
  Duration grace = std::chrono::microseconds(200);
  // A ready queue of which nothing was heard for so long is asked for its progress, if somebody waits for it.
  Duration query_after = std::chrono::microseconds(200);
  // A queue that shows no progress for so long after it was first asked is stalled: everybody runs for a
  // window, and the next one is twice as long. One of `endless_window` would stay open until there is
  // progress.
  Duration stall_after = std::chrono::milliseconds(80);
  Duration first_window = std::chrono::milliseconds(10);
  Duration endless_window = std::chrono::milliseconds(1280);
  Duration timeslice = std::chrono::microseconds(TIMESLICE_DEFAULT);
};

// Where a scheduler's outputs go. Called from Scheduler::Decide only, and only for what has changed.
class ControlSink {
 public:
  virtual void SetControl(QueueId queue, const Control& control) = 0;
  // Somebody waits for `queue`, and its progress is not known: find out.
  virtual void Query(QueueId queue) = 0;
  // How long `process` may keep `device` at a stretch; kDriversSlice: as its driver has it.
  virtual void SetSlice(ProcessId process, DeviceId device, Duration slice) = 0;

 protected:
  ~ControlSink() = default;
};

enum class QueueState : uint8_t { kIdle, kReady, kLingering };

// Why a queue that has work does not run, as far as the scheduler knows.
enum class WaitReason : uint8_t {
  kNone,       // it may run, or has no work
  kHeld,       // a queue with a better claim runs: QueueStats::waits_for
  kTurn,       // the policy runs equal queues one after another
  kOffDevice,  // its process is off the device while another process has its turn
  kStalled,    // it may run and retires nothing
  kAbsent,     // SetAbsent: its program suspended it, or its process cannot run
};

struct QueueStats {
  QueueState state = QueueState::kIdle;
  bool stalled = false;
  WaitReason wait_reason = WaitReason::kNone;
  QueueId waits_for{};        // kHeld: the queue with the best claim
  TimePoint waiting_since{};  // valid unless kNone
  Control control;
  uint64_t submitted = 0;
  uint64_t retired = 0;
  Duration service{};  // device time received; queues that run side by side divide it
  Duration waiting{};  // time spent ready and held
  uint64_t holds = 0;  // how often it was held
  uint64_t incidents = 0;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // `sliceable`: the device divides its time between this process and others (level 3).
  // REQUIRES: `id` was never added before. False: out of memory; the queue is unknown and so never held.
  bool AddQueue(QueueId id, ProcessId process, DeviceId device, const Hints& hints, TimePoint now,
                bool sliceable = false);
  // The job that `process` belongs to; 0: none, and the process is forgotten. REQUIRES: it has no queue.
  void SetJob(ProcessId process, JobId job);
  void RemoveQueue(QueueId id, TimePoint now);
  // Everything below ignores an unknown `id`.

  // The queue's counters as read from its control block: may repeat itself, may be a liar's. `retired`
  // counts up to `submitted`; more is taken as equal.
  void Progress(QueueId id, uint64_t submitted, uint64_t retired, TimePoint now);
  // The queue's count of moves, as read from its control block: when it changes, commands have retired though
  // `retired` does not show it.
  void Moved(QueueId id, uint32_t moves, TimePoint now);
  // What `waiter` waits for on other queues; replaces what was set before. At most 4 are kept.
  void SetDependencies(QueueId waiter, std::span<const Dependency> dependencies);
  // The program suspended the queue itself, or its process cannot run: it makes nobody wait.
  void SetAbsent(QueueId id, bool absent, TimePoint now);
  void SetHints(QueueId id, const Hints& hints);
  std::optional<Hints> GetHints(QueueId id) const;

  void SetPolicy(const Policy& policy);
  const Policy& policy() const;
  void SetTimeslice(Duration timeslice);  // clamped to TIMESLICE_MIN … TIMESLICE_MAX
  Duration timeslice() const;

  // Decides anew and reports what has changed. Returns when to be asked again (kNever: when something
  // happens).
  TimePoint Decide(TimePoint now, ControlSink& sink);

  // What was last reported of the queue (ControlSink::SetControl). Of an unknown one: that it runs.
  Control GetControl(QueueId id) const;
  std::optional<QueueStats> Stats(QueueId id, TimePoint now) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xsched::sched
