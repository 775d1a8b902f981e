// Time slices of whole processes, where a device's own scheduler divides its time between them (level 3).
//
// They are set when processes or hints change, never per task: a call takes the driver a fraction of a
// millisecond. The policy says how long each process may keep the device (Policy::Divide). Two processes with
// the shortest slice cannot both want the device, for it would do nothing but change between them; one that
// waits at a gate wants it as well. So of those that are ready one has its turn at a time, and the others are
// taken off.
//
// Pure; of one device.
#pragma once

#include "base/array.h"
#include "sched/core/scheduler.h"

namespace xsched::sched {

struct QueueRecord;

class ProcessSlices {
 public:
  // A queue has come, or hints or the policy have changed: Refresh is due.
  void Changed() { refresh_at_ = TimePoint{}; }
  // A queue has gone. Programs make and release streams by the second: Refresh is due in a while.
  void QueueGone(TimePoint now);
  TimePoint refresh_at() const { return refresh_at_; }
  // Decides the slices anew; `queues` are all of the device's. Reports what has changed.
  void Refresh(const Policy& policy, DeviceId device, std::span<QueueRecord* const> queues,
               ControlSink& sink);

  // Does nobody have another slice than the driver's?
  bool none() const { return division_ == Division::kNone; }
  // Do the slices alone say who runs?
  bool replace_holding() const { return division_ == Division::kAlone; }

  // After the policy: of the processes with the shortest slice that may run, takes all but one off the
  // device. A turn is over after `turn`, as soon as a more urgent process has come and finished. Returns when
  // the next one has its turn at the latest.
  TimePoint TakeTurns(DeviceId device, std::span<QueueRecord* const> queues, TimePoint now, Duration turn,
                      ControlSink& sink);

 private:
  struct Member {
    ProcessId process;
    Duration slice;     // by the policy
    Duration reported;  // that, or kNoSlice
    bool ready = false;
    bool competes = false;  // … and may run
  };

  Member* Find(ProcessId process);
  void CountQueues(std::span<QueueRecord* const> queues);
  // The competing member after `process`, around the circle. Null: nobody competes.
  const Member* After(ProcessId process) const;
  static void Report(DeviceId device, Member& member, Duration slice, ControlSink& sink);

  Array<Member> members_;  // in the order in which they came
  Array<ProcessView> views_;
  Division division_ = Division::kNone;
  TimePoint refresh_at_ = kNever;
  ProcessId turn_{};
  TimePoint turn_until_{};
  bool urgent_came_ = false;  // and has nobody else run since
};

}  // namespace xsched::sched
