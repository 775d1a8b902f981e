#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

bool XQueue::Begin(const Start& start) {
  const XHwQueueOps& ops = start.hwq->ops;
  const XQueueOptions& options = start.options;
  FlowControl*& flow = flows_[ops.gating];
  if (flow == nullptr) flow = FlowControl::Make(ops.gating, state_);
  if (flow == nullptr) return false;

  environment_ = *start.environment;
  hwq_ = start.hwq;
  state_.Begin({start.index, start.block, environment_.process, environment_.signals, ops.gating,
                options.level, options.config, environment_.clock});
  flow->Begin({&ops, hwq_->impl, options.host_gate_latency, options.device_gate_latency,
               start.shared_memory.memory, start.shared_memory.size});
  flow_ = flow;
  suspension_.Begin({&ops, hwq_->impl, &state_, environment_.process, environment_.siblings, this});
  answered_query_.store(0, std::memory_order_relaxed);
  blocking_submit_ = options.blocking_submit;
  {
    MutexLock lock(hints_mutex_);
    hints_ = options.hints;
  }
  urgency_told_.noted = 0;
  urgency_told_.version.store(0, std::memory_order_relaxed);
  if (options.pausable) MakePausable();
  return true;
}

void XQueue::SetHandle(XQueueHandle handle) {
  if (handle != 0) id_ = handle;
  handle_.store(handle, std::memory_order_release);
}

void XQueue::End() {
  hwq_->xqueue.store(nullptr, std::memory_order_release);
  hwq_ = Ref<HwQueue>();
}

uint64_t XQueue::LaunchBeginScheduled(uint64_t number, uint32_t flags) {
  const ProcessState& process = *environment_.process;
  if (process.shut_down()) return number;
  if (flags != 0 && !process.scheduled()) flags = 0;  // as in Held
  if (flags != 0) {
    environment_.signals->SomethingIsTaken();
    if (retired() + 1 >= number) environment_.signals->RingScheduler(index());
  }
  if (process.hard_stops() != 0 && !KeepsStill()) environment_.siblings->LiftHardStops(*this);
  if (!flow_->BeforeLaunch(number, flags)) return number;
  // Whoever takes the queue away lets us go, and waits for that.
  if (environment_.siblings->TryPin(*this)) {
    flow_->WaitBeforeLaunch(number);
    environment_.siblings->Unpin(*this);
  }
  return number;
}

void XQueue::LaunchEnd(uint64_t number, bool launched) {
  if (!launched && retired() + 1 == number) RetiredUpTo(number);
  if (launched && (block().flags.load(std::memory_order_relaxed) & ipc::kFlagTracked) != 0)
    flow_->AfterLaunch(number);
  state_.CountIssued();
}

void XQueue::AskDriver() {
  if (!environment_.process->shut_down() && flow_->AnswerIsNear()) RequestProgress();
}

XQueue::Left XQueue::Attend(IfBusy if_busy) {
  Left left;
  if (environment_.process->hard_stops() != 0 && !KeepsStill() && !Idle())
    environment_.siblings->LiftHardStops(*this);
  left.stopped = !ApplyLevels();
  AnswerQuery();
  left.gates = !flow_->Advance(if_busy);
  state_.waiters.NotifyIfAny();
  return left;
}

void XQueue::AnswerQuery() {
  // While it is stopped there is nothing to tell; and a driver that is asked may wait for what is stopped.
  if (hwq_->ops.poll_markers != nullptr && suspension_.Stopped()) return;
  uint32_t query = block().query.load(std::memory_order_acquire);
  if (answered_query_.exchange(query, std::memory_order_acq_rel) == query) return;
  flow_->OnQuery();
  // What is known is told at once; what is not, when the driver has said it or the next marker is reached.
  state_.ReportNextProgress(!Idle());
  environment_.signals->RingScheduler(index());
  if (!Idle()) environment_.driver->Request(index(), DriverRequests::kProgress);
}

bool XQueue::SeeGivenBack(bool going_on) {
  if (going_on && environment_.process_level->Settled()) return true;
  environment_.signals->GiveBackLater();
  return false;
}

void XQueue::Suspend(bool suspended) {
  if (suspended) flow_->OnSuspend();
  state_.SetSuspended(suspended);
  SeeGivenBack(!Attend(IfBusy::kWait).stopped);
}

void XQueue::SetLevel(XPreemptLevel level) {
  state_.SetLevel(level);
  SeeGivenBack(!Attend(IfBusy::kWait).stopped);
}

void XQueue::SetConfig(const LaunchConfig& config) {
  state_.SetConfig(config);
  Attend(IfBusy::kWait);
}

void XQueue::LiftHardStop() {
  const Suspension::Lifted lifted = suspension_.LiftHardStop();
  if (lifted == Suspension::Lifted::kNothing) return;
  // The agent may have been asked something meanwhile.
  if (SeeGivenBack(lifted == Suspension::Lifted::kDone)) environment_.signals->Wake();
}

void XQueue::WaitInFlight() {
  const bool deactivated = suspension_.Deactivated();
  if (deactivated && !hwq_->ops.deactivate_interrupts) {
    hwq_->ops.synchronize(hwq_->impl);
    return;
  }
  if (deactivated || suspension_.Interrupted()) return;
  flow_->WaitStopped(
      [](const void* suspension) { return static_cast<const Suspension*>(suspension)->Interrupted(); },
      &suspension_);
}

sched::Hints XQueue::hints() const {
  MutexLock lock(hints_mutex_);
  return hints_;
}

void XQueue::SetHints(const sched::Hints& hints) {
  MutexLock lock(hints_mutex_);
  hints_ = hints;
}

void XQueue::ResetAfterFork() {
  state_.ResetAfterFork();
  for (FlowControl* flow : flows_) {
    if (flow != nullptr) flow->ResetAfterFork();
  }
  suspension_.ResetAfterFork();
  hints_mutex_.ResetAfterFork();
  worker_.ResetAfterFork();
}

}  // namespace xsched::preempt
