// The scheduler: knows each queue, and decides which of them run. Pure: events and time in, controls out. The
// same code runs in xserver, in a process with the local scheduler, and in the simulator.
//
// The states of a queue, as the scheduler sees them:
//
//            first unfinished command                 all retired
//     idle ---------------------------> ready ----------------------------> lingering
//      ^                                  ^                                     |
//      |        grace period over         |          next command               |
//      +----------------------------------|-------------------------------------+
//                                         +-------------------------------------+
//
// The policy sees a lingering queue as ready, because programs that are bound by launch cost have many small
// gaps. A queue that never resumes within the grace period has no such gaps, and does not linger (pauses.h).
//
// If a queue runs while others of its device are held, and reports nothing, the scheduler queries its
// progress. If it makes none for a bounded time it is *stalled*, and every queue of the device runs for a
// window (watch.h). Each such episode is counted as an incident.
//
// Not thread-safe. Needs no libstdc++ at run time; if memory runs out, every queue runs.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "sched/core/policy_setting.h"
#include "sched/core/types.h"

namespace xsched::sched {

struct SchedulerConfig {
  // How long a queue that has retired everything still counts as ready: if it holds queues of its own
  // process, or on a device without time slices; and if a pause may cost a change between processes, which
  // takes the device from everybody for 0.2 to 1 ms: all that it holds are queues of other processes, with
  // time slices, or its process takes turns with others (ProcessSlices::turns_only). The larger one counts
  // then.
  Duration grace = std::chrono::microseconds(200);
  Duration process_grace = std::chrono::milliseconds(1);
  // If a ready queue reports nothing for so long while others wait because of it, its progress is queried.
  Duration query_after = std::chrono::microseconds(200);
  // If a queue makes no progress for so long after the first query, it is stalled, and every queue of the
  // device runs for a window. Each window is twice as long as the one before. A window that would be as long
  // as `endless_window` stays open until there is progress.
  Duration stall_after = std::chrono::milliseconds(80);
  Duration first_window = std::chrono::milliseconds(10);
  Duration endless_window = std::chrono::milliseconds(1280);
  Duration timeslice = std::chrono::microseconds(TIMESLICE_DEFAULT);
  size_t at_a_time = 1;
};

// Receives the scheduler's outputs. Called from Scheduler::Decide only, and only for what has changed.
class ControlSink {
 public:
  virtual void SetControl(QueueId queue, const Control& control) = 0;
  // Others wait because of `queue`, and its progress is not known: find it out.
  virtual void Query(QueueId queue) = 0;
  // How long `process` may keep `device` at a stretch. kDriversSlice: as long as the driver's own slice.
  virtual void SetSlice(ProcessId process, DeviceId device, Duration slice) = 0;
  // `process` has its turn on `device` from now on, or has it no longer. The device needs nothing for it.
  virtual void SetTurn(ProcessId /*process*/, DeviceId /*device*/, bool /*has_turn*/) {}

 protected:
  ~ControlSink() = default;
};

enum class QueueState : uint8_t { kIdle, kReady, kLingering };

// Why a queue with work does not run, as far as the scheduler knows.
enum class WaitReason : uint8_t {
  kNone,       // it may run, or has no work
  kHeld,       // a queue with a better claim runs: QueueStats::waits_for
  kTurn,       // the policy runs queues one after another, and now another queue of no better claim
  kOffDevice,  // its process is off the device while another process has its turn
  kStalled,    // it may run and retires nothing
  kAbsent,     // its program suspended it, or its process cannot run (SetAbsent)
  kLimited,    // it has used up its limit: QueueStats::limited_for
};

struct QueueStats {
  QueueState state = QueueState::kIdle;
  bool stalled = false;
  WaitReason wait_reason = WaitReason::kNone;
  QueueId waits_for{};        // kHeld, kTurn, kOffDevice: of those that run, the one with the best claim
  TimePoint waiting_since{};  // valid unless kNone
  Duration limited_for{};     // kLimited: how long it still may not run
  Control control;
  uint64_t submitted = 0;
  uint64_t retired = 0;
  Duration service{};  // device time received; queues that run at the same time divide it
  Duration waiting{};  // time during which it was ready, and held or off the device
  uint64_t holds = 0;  // how often it was held
  uint64_t incidents = 0;
  // Of its process on its device, as last reported (ControlSink).
  Duration slice{};
  bool has_turn = false;
};

// What a queue's client and its device can do.
struct QueueTraits {
  // The device divides its time between the queue's process and others (level 3).
  bool sliceable = false;
  // A long command of another process does not keep the device from the queue: the device divides its time
  // between processes, whatever the level.
  bool runs_beside_others = false;
  // The client reports when the device has nothing more of the held queue (Scheduler::Drained), if
  // Control::charges_overruns.
  bool reports_overruns = false;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // REQUIRES: `id` was never added before. False: out of memory; the queue is unknown and so never held.
  bool AddQueue(QueueId id, ProcessId process, DeviceId device, const Hints& hints, TimePoint now,
                const QueueTraits& traits = {});
  // The job that `process` belongs to; 0: none.
  void SetJob(ProcessId process, JobId job);
  // The tenant that `process` belongs to; 0: none is known.
  void SetTenant(ProcessId process, TenantId tenant);
  // Of all devices. It lasts until it is set again, also while the tenant has no process.
  void SetTenantShare(TenantId tenant, const TenantShare& share);
  // The time slices of others stay as they are for a while if this was the last queue of its process:
  // programs make and release streams by the second.
  void RemoveQueue(QueueId id, TimePoint now);
  // The process has ended or left: it is forgotten, and the time slices are decided anew in the next
  // decision. REQUIRES: it has no queue.
  void RemoveProcess(ProcessId process);
  // Everything below ignores an unknown `id`.

  // The queue's counters, as read from its control block. They may be the same as before, and they may be
  // wrong on purpose. If `retired` is more than `submitted`, it is taken as equal.
  void Progress(QueueId id, uint64_t submitted, uint64_t retired, TimePoint now);
  // The queue's count of moves, as read from its control block. When it changes, commands have retired,
  // although `retired` does not show it. Call it before Progress with the same reading: what the queue
  // reports first after a hold may have happened before it.
  void Moved(QueueId id, uint32_t moves, TimePoint now);
  // The queue's count of drains, as read from its control block. When it changes, the device has nothing more
  // of the queue, which was held.
  void Drained(QueueId id, uint32_t drains, TimePoint now);
  // How often a query has found the device idle, as read from the queue's control block. When it changes, the
  // device had finished all of the queue's commands, and the program had not noticed. Call it after Progress
  // with the same reading: a queue that has work then went on at once.
  void FoundIdle(QueueId id, uint32_t found_idle, TimePoint now);
  // What `waiter` waits for on other queues; replaces what was set before. At most 4 are kept.
  void SetDependencies(QueueId waiter, std::span<const Dependency> dependencies);
  // The program suspended the queue, or its process cannot run: no other queue waits because of it.
  void SetAbsent(QueueId id, bool absent, TimePoint now);
  void SetHints(QueueId id, const Hints& hints);
  // Many queues of the tenant are about to get other hints: together, that costs no more than their devices
  // have queues.
  void ExpectHints(TenantId tenant);
  // What is known of the queue's process. REQUIRES: the same for all queues of one process.
  void SetFacts(QueueId id, const ProcessFacts& facts);
  std::optional<Hints> GetHints(QueueId id) const;
  // The part of `device` that would be guaranteed to all of its processes together, if a queue of `process`
  // had these hints: the queue `id`, or a new one if it is unknown. More than 1 cannot be kept: whoever sets
  // hints must refuse them.
  double GuaranteedWith(QueueId id, ProcessId process, DeviceId device, const Hints& hints) const;

  void SetPolicy(const PolicySetting& setting);
  PolicySetting setting() const;
  const Policy& policy() const { return setting().first(); }
  void SetTimeslice(Duration timeslice);  // clamped to TIMESLICE_MIN … TIMESLICE_MAX
  Duration timeslice() const;
  void SetAtATime(size_t queues);  // clamped to 1 … kMostAtATime
  size_t at_a_time() const;

  // Decides anew and reports what has changed. Returns when to be asked again (kNever: when something
  // happens).
  TimePoint Decide(TimePoint now, ControlSink& sink);

  // What was last reported for the queue (ControlSink::SetControl). An unknown queue runs.
  Control GetControl(QueueId id) const;
  std::optional<QueueStats> Stats(QueueId id, TimePoint now) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xsched::sched
