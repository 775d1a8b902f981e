// Time slices of whole processes, where a device's own scheduler divides its time between them (level 3).
//
// They are set when processes or hints change, never per task: a call takes the driver half a millisecond.
// The policy says how long each process may keep the device (Policy::Divide). Two processes with the shortest
// slice cannot both run, for the device would do nothing but change between them: so of those that are ready
// one has its turn at a time, and the others' queues are held.
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

  // After the policy: of the processes with the shortest slice, holds the queues (QueueRecord::run) of all
  // but one. Returns when the next one has its turn.
  TimePoint TakeTurns(std::span<QueueRecord* const> queues, TimePoint now, Duration turn);

 private:
  Duration SliceOf(ProcessId process) const;

  struct Set {
    ProcessId process;
    Duration slice;
  };
  Array<Set> slices_;  // as reported, in order of the ids; empty: everybody has the driver's
  Array<ProcessView> views_;
  Division division_ = Division::kNone;
  TimePoint refresh_at_ = kNever;
  ProcessId turn_{};
  TimePoint turn_until_{};
};

}  // namespace xsched::sched
