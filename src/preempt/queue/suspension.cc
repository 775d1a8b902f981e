#include "preempt/queue/suspension.h"

#include "ipc/control_access.h"

namespace xsched::preempt {

void Suspension::Begin(const Start& start) {
  start_ = start;
  MutexLock lock(mutex_);
  deactivated_ = interrupted_ = false;
}

bool Suspension::Apply() {
  bool done = true;
  if (start_.queue->has_device_gates() || StopsProcess()) done = ApplyHardStop();
  if (start_.ops->deactivate != nullptr) done &= ApplyDeactivation();
  return done;
}

bool Suspension::ApplyDeactivation() {
  const XHwQueueOps& ops = *start_.ops;
  const FlowState& queue = *start_.queue;
  MutexLock lock(mutex_);
  const bool hold = queue.Held() && !queue.ForcedOpen();
  if (hold && queue.level() >= kPreemptLevelDeactivate && !deactivated_) {
    deactivated_ = ops.deactivate(start_.hwq) == kXSchedSuccess;
  }
  if (hold && queue.level() >= kPreemptLevelInterrupt && deactivated_ && !interrupted_ &&
      ops.interrupt != nullptr) {
    interrupted_ = ops.interrupt(start_.hwq) == kXSchedSuccess;
  }
  if (!hold && interrupted_) interrupted_ = ops.restore(start_.hwq) != kXSchedSuccess;
  if (!hold && deactivated_) deactivated_ = ops.reactivate(start_.hwq) != kXSchedSuccess;
  return hold || (!interrupted_ && !deactivated_);
}

bool Suspension::ApplyHardStop() {
  const FlowState& queue = *start_.queue;
  MutexLock lock(mutex_);
  const bool forced = queue.ForcedOpen();
  const bool lifted = forced || (queue.has_device_gates() && start_.process->suspensions_lifted());
  ipc::ForceOpen(queue.block(), forced || !start_.process->scheduled());
  ipc::SetPause(queue.block(), queue.suspended() && !lifted);
  if (!StopsProcess()) return true;
  const bool stop = !lifted && WantsHardStop();
  if (stop && !interrupted_) HardStop();
  return stop || !interrupted_ || EndHardStop();
}

bool Suspension::WantsHardStop() const {
  const FlowState& queue = *start_.queue;
  // With device-side gates, only a suspension by the program makes a hard stop: the scheduler stops such
  // queues by gates and time slices.
  if (queue.has_device_gates()) return queue.suspended() && queue.level() >= kPreemptLevelInterrupt;
  return queue.Held() && queue.level() >= kPreemptLevelDeactivate && queue.retired() < queue.issued();
}

void Suspension::HardStop() {
  // Before checking the other queues: a launch on one of them from now on sees the hard stop and ends it.
  start_.process->CountHardStop(1);
  interrupted_ =
      start_.siblings->OthersAreQuiet(*start_.self) && start_.ops->interrupt(start_.hwq) == kXSchedSuccess;
  if (!interrupted_) start_.process->CountHardStop(-1);
}

bool Suspension::EndHardStop() {
  if (start_.ops->restore(start_.hwq) != kXSchedSuccess) return false;
  interrupted_ = false;
  start_.process->CountHardStop(-1);
  return true;
}

Suspension::Lifted Suspension::LiftHardStop() {
  MutexLock lock(mutex_);
  if (!interrupted_ || !StopsProcess()) return Lifted::kNothing;
  return EndHardStop() ? Lifted::kDone : Lifted::kNotYet;
}

bool Suspension::Stopped() const {
  MutexLock lock(mutex_);
  return interrupted_ || (deactivated_ && start_.ops->deactivate_interrupts);
}

bool Suspension::Deactivated() const {
  MutexLock lock(mutex_);
  return deactivated_;
}

bool Suspension::Interrupted() const {
  MutexLock lock(mutex_);
  return interrupted_;
}

}  // namespace xsched::preempt
