// Time slices of whole processes, where a device's own scheduler divides its time between them (level 3).
//
// They are set when processes or hints change, never per task: a call takes the driver a fraction of a
// millisecond. The policy says how long each process may keep the device (Policy::Divide). Two processes with
// the shortest slice cannot both want the device, for it would do nothing but change between them; one that
// waits at a gate, or retires nothing, wants it as well. So of those that are ready
//   - one has its turn at a time, and the others are taken off (Turns says whose turn it is);
//   - or, where the commands of all of them are so short that gates alone stop them soon enough, they share
//     the device in the driver's slices: by itself, a program bound by launch cost leaves most of it unused.
// In these cases the policy's slices would make somebody stand still. Then there are no turns, nobody is off,
// and whoever has work has the driver's slice at least:
//   - The watchdog lets everybody run.
//   - A process with the shortest slice may run, and one with a longer slice has work that is not urgent. The
//     latter is on the device, too, if only at its gate.
//   - An absent queue has work. Its process may stand on the device, and may not follow what it is told.
//
// Of one device. Pure.
#pragma once

#include <span>

#include "base/array.h"
#include "sched/core/scheduler.h"

namespace xsched::sched {

struct DeviceRecord;
struct Party;
struct QueueRecord;
class Turns;

// One process on one device.
struct ProcessRecord {
  ProcessId id{};
  DeviceRecord* device = nullptr;
  size_t queues = 0;         // may be 0 for a while: programs make and release streams by the second
  uint64_t hints_held = 0;   // which of the device's distinct hints its queues have, a bit each,
  uint64_t hints_twice = 0;  // … and which of them more than one queue has

  Duration slice = kDriversSlice;     // by the policy
  Duration reported = kDriversSlice;  // as last reported: that, or what turns, sharing and windows make of it
  Priority priority = PRIORITY_DEFAULT;  // the highest of its queues'; as of the last Refresh
  Utilization utilization = UTILIZATION_DEFAULT;
  TimePoint off_since{};  // valid while off()
  PolicyState policy_state;

  // Valid during and after a decision.
  bool ready = false;
  bool competes = false;   // … and may run
  bool on = false;         // … and is on the device, with the shortest slice or as one of those that share
  bool on_others = false;  // the process is, or was, on other devices as well
  bool absent_work = false;  // a queue of it is absent and has work

  Party* party = nullptr;  // what has its turns together with this; only with the shortest slice
  ProcessRecord* next_in_party = nullptr;
  Party* left_party = nullptr;  // between Turns::Detach and Turns::Join: what it was a member of

  // How long its commands take the device: what it has retired in how much of the device's time, since the
  // last comparison.
  uint64_t retired = 0;  // of all of its queues
  uint64_t seen_retired = 0;
  Duration on_device{};
  bool compared = false;        // false: since then its time was not counted
  TimePoint weigh_at = kNever;  // it has been asked what it has retired
  bool ask = false;
  bool brief = false;  // so short that gates alone stop it soon enough

  bool off() const { return reported == kNoSlice; }
};

class ProcessSlices {
 public:
  ProcessSlices() = default;
  ~ProcessSlices();
  ProcessSlices(const ProcessSlices&) = delete;
  ProcessSlices& operator=(const ProcessSlices&) = delete;

  // The record of `process` on this device, made if there is none. Null: out of memory.
  ProcessRecord* Get(ProcessId process, DeviceRecord& device);
  ProcessRecord* Find(ProcessId process) const;  // null: it is not here
  // A queue has come, or hints or the policy have changed: Refresh is due.
  void Changed() { refresh_at_ = TimePoint{}; }
  // A queue of `process` has gone. Refresh is due in a while, for another may come soon.
  void QueueGone(ProcessRecord& process, TimePoint now);
  TimePoint refresh_at() const { return refresh_at_; }
  // Decides the slices anew; `queues` are all of the device's. Processes without queues are forgotten.
  void Refresh(const Policy& policy, DeviceId device, std::span<QueueRecord* const> queues, Turns& turns,
               ControlSink& sink);

  // Does nobody have another slice than the driver's?
  bool none() const { return division_ == Division::kNone; }
  // Is a process that is held taken off the device soon, whatever it has in flight?
  bool cut_short() const { return !none() && !sharing_ && !released_; }
  // Do slices serve those whom the policy lets run? Then all queues must tell when they have work, even where
  // none can be held any more.
  bool beside_holding() const { return division_ == Division::kBesideHolding; }
  // Do the slices alone say who runs?
  bool replace_holding() const { return division_ == Division::kAlone; }
  // Do the processes with the shortest slice have their turns one after another?
  bool take_turns() const { return division_ == Division::kBesideHolding && !sharing_ && !released_; }

  // In this order, in every decision, once it is known which queues run:
  // 1. Counts who wants the device, and decides whether they share it. `released`: the watchdog lets
  // everybody
  //    run. Returns when to be called again at the latest.
  TimePoint Observe(std::span<QueueRecord* const> queues, bool released, TimePoint now, ControlSink& sink);
  // 2. Turns::Update chooses who is on.
  // 3. Reports what has changed. `above`: in a window, processes of a higher priority than this keep a long
  //    slice, for they have a better claim than the queue that the window is for.
  void Report(DeviceId device, Priority above, TimePoint now, ControlSink& sink);

  // For Turns: whose turn it is here.
  struct Turn {
    ProcessRecord* holder = nullptr;
    TimePoint keeps_until{};      // the earliest time at which a job whose turn it is takes it back
    size_t ready = 0;             // how many have the shortest slice and work,
    size_t competing = 0;         // … and may run
    bool urgent_at_work = false;  // a more urgent process keeps all of them from the device
  };
  Turn& turn() { return turn_; }
  std::span<ProcessRecord* const> processes() const { return processes_; }  // in order of coming

 private:
  void Forget(ProcessRecord& process, DeviceId device, Turns& turns, ControlSink& sink);
  // Processes of one job or, where none is known, of one priority.
  struct Group {
    JobId job;
    Priority priority;
    uint32_t members;
  };
  void JoinParties(Turns& turns);
  template <typename Do>
  bool ForEachParty(const Turns& turns, Do&& act);
  size_t IndexById(ProcessId process) const;
  bool PrepareGroups();
  Group& FindGroup(JobId job, Priority priority);
  void Account(TimePoint now);
  void Count(std::span<QueueRecord* const> queues);
  Duration SliceOf(const ProcessRecord& process, const ProcessRecord* holder, Priority above,
                   TimePoint now) const;
  TimePoint Weigh(TimePoint now, std::span<QueueRecord* const> queues, ControlSink& sink);
  static void Set(DeviceId device, ProcessRecord& process, Duration slice, TimePoint now, ControlSink& sink);

  Array<ProcessRecord*> processes_;
  Array<ProcessRecord*> by_id_;
  Array<ProcessView> views_;  // kept for its memory; likewise
  Array<Group> groups_;
  Division division_ = Division::kNone;
  TimePoint refresh_at_ = kNever;
  Turn turn_;
  bool sharing_ = false;  // no turns: those that are ready share the device
  // No turns, and nobody has the shortest slice (see above), because of
  bool released_ = false;
  bool window_ = false;         // … the watchdog,
  TimePoint conflict_until_{};  // … slices of different classes side by side
  TimePoint accounted_at_{};
};

}  // namespace xsched::sched
