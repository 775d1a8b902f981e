#include "preempt/queue/xqueue.h"

#include "base/no_cancellation.h"

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
                options.level, options.config, environment_.clock, environment_.rough_clock,
                ops.poll_markers != nullptr});
  flow->Begin({&ops, hwq_->impl, options.host_gate_latency, options.device_gate_latency,
               start.shared_memory.memory, start.shared_memory.size});
  flow_ = flow;
  suspension_.Begin({&ops, hwq_->impl, &state_, environment_.process, environment_.siblings, this});
  answered_query_.store(0, std::memory_order_relaxed);
  stopped_query_.store(0, std::memory_order_relaxed);
  worker_.Begin(*environment_.hw_commands);
  blocking_submit_ = options.blocking_submit;
  {
    MutexLock lock(hints_mutex_);
    hints_ = options.hints;
  }
  if (options.pausable) flow_->MakePausable();
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

bool XQueue::Announce(uint64_t number, uint32_t flags) {
  const ProcessState& process = *environment_.process;
  if (flags != 0 && !process.scheduled()) flags = 0;  // as in Held
  const bool begins_burst = flags != 0 && retired() + 1 >= number;
  if (begins_burst && (flags & ipc::kFlagCounted) != 0) ipc::BeginBurst(block(), state_.Now());
  flags &= ~ipc::kFlagCounted;
  if (flags != 0) {
    environment_.signals->SomethingIsTaken();
    if (begins_burst) environment_.signals->RingScheduler(index());
  }
  if (process.hard_stops() != 0 && !flow_->KeepsStill()) environment_.siblings->LiftHardStops(*this);
  return flow_->BeforeLaunch(number, flags);
}

uint64_t XQueue::LaunchBeginPassing() {
  const uint64_t number = state_.CountLaunch();
  const uint32_t flags = state_.raw_flags();
  if (flags == 0 ? state_.Unhindered() : state_.Quiet(number, flags)) return number;
  if (environment_.process->shut_down()) return number;
  const NoCancellation counted;  // as in LaunchBeginScheduled
  Announce(number, flags);
  return number;
}

uint64_t XQueue::LaunchBeginScheduled(uint64_t number, uint32_t flags) {
  if (environment_.process->shut_down()) return number;
  const NoCancellation counted;  // the launch has begun, and must end
  if (!Announce(number, flags)) return number;
  // The queue outlives its worker, which needs no pin.
  if (worker_.IsThisThread()) {
    flow_->WaitBeforeLaunch(number);
    return number;
  }
  // The thread that destroys the queue makes this wait end, and then waits for our pin.
  if (environment_.siblings->TryPin(*this)) {
    flow_->WaitBeforeLaunch(number);
    environment_.siblings->Unpin(*this);
  }
  return number;
}

void XQueue::LaunchEndScheduled(uint64_t number, bool launched) {
  if (launched) {
    flow_->AfterLaunch(number);
  } else if (retired() + 1 == number) {
    RetiredUpTo(number);
  }
}

void XQueue::AskDriver() {
  if (!environment_.process->shut_down() && flow_->AnswerIsNear()) flow_->RequestProgress();
}

void XQueue::PollOverrun() {
  if (!environment_.process->shut_down()) flow_->PollOverrun();
}

bool XQueue::MarkLastWork() {
  if (state_.flags() != 0 && !environment_.process->shut_down()) flow_->RequestProgress();
  return HasLastWork();
}

XQueue::Left XQueue::Attend(Gates gates) {
  Left left;
  if (environment_.process->hard_stops() != 0 && !flow_->KeepsStill() && !Idle())
    environment_.siblings->LiftHardStops(*this);
  left.stopped = !ApplyLevels();
  AnswerQuery();
  left.gates = gates == Gates::kOpen ? !Advance() : HasClosedGates();
  state_.waiters.NotifyIfAny();
  return left;
}

bool XQueue::Advance() {
  if (!hwq_->ops.opening_runs_commands || !NoDriverCalls::Here()) return flow_->Advance();
  if (!flow_->GateIsDue() || environment_.driver->Request(index(), DriverRequests::kGates)) return true;
  return flow_->Advance();
}

void XQueue::AnswerQuery() {
  const uint32_t query = ipc::ReadQuery(block());
  // A stopped queue makes no progress, and the driver might wait for stopped commands. The question is
  // answered when it goes on.
  if (hwq_->ops.poll_markers != nullptr && suspension_.Stopped()) {
    // A stop of the whole process is lifted when another queue of it launches.
    const bool stays = hwq_->ops.deactivate_interrupts;
    if (stopped_query_.exchange(query, std::memory_order_acq_rel) != query && stays &&
        state_.OverrunsCharged())
      state_.NotifyDrained();
    return;
  }
  if (answered_query_.exchange(query, std::memory_order_acq_rel) == query) return;
  flow_->OnQuery();
  // Known progress is reported at once, the rest when the driver answers or the next marker is reached.
  const bool idle = Idle();
  // The device has reported it, which rings no doorbell, and counts no end of the burst. What is launched
  // from now on waits for the end of the hold.
  if (idle) {
    ipc::CountFoundIdle(block());
    RetiredUpTo(retired());
    if (state_.DrainIsAwaited()) state_.NotifyDrained();
  }
  state_.ReportNextProgress(!idle);
  environment_.signals->RingScheduler(index());
  if (!idle) environment_.driver->Request(index(), DriverRequests::kProgress);
}

bool XQueue::SeeGivenBack(bool going_on) {
  if (going_on && environment_.process_level->Settled()) return true;
  environment_.signals->GiveBackLater();
  return false;
}

void XQueue::Suspend(bool suspended) {
  if (suspended) flow_->OnSuspend();
  state_.SetSuspended(suspended);
  SeeGivenBack(!Attend().anything());
}

void XQueue::SetLevel(XPreemptLevel level) {
  state_.SetLevel(level);
  SeeGivenBack(!Attend().anything());
}

void XQueue::SetConfig(const LaunchConfig& config) {
  state_.SetConfig(config);
  if (Attend().anything()) environment_.signals->GiveBackLater();
}

void XQueue::LiftHardStop() {
  const Suspension::Lifted lifted = suspension_.LiftHardStop();
  if (lifted == Suspension::Lifted::kNothing) return;
  // Meanwhile the scheduler may have changed something for the agent to act on.
  if (SeeGivenBack(lifted == Suspension::Lifted::kDone)) environment_.signals->Wake();
}

bool XQueue::WaitInFlight() {
  const bool deactivated = suspension_.Deactivated();
  if (deactivated && !hwq_->ops.deactivate_interrupts)
    return hwq_->ops.synchronize(hwq_->impl) != kXSchedErrorNotAllowed;
  if (deactivated || suspension_.Interrupted()) return true;
  return flow_->WaitStopped(
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
