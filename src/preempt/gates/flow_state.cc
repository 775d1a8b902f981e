#include "preempt/gates/flow_state.h"

namespace xsched::preempt {

void FlowState::Begin(const Start& start) {
  index_ = start.index;
  block_ = start.block;
  process_ = start.process;
  signals_ = start.signals;
  clock_ = start.clock;
  rough_clock_ = start.rough_clock;
  polls_markers_ = start.polls_markers;
  gating_.store(start.gating, std::memory_order_relaxed);
  SetLevel(start.level);
  SetConfig(start.config);
  suspended_.store(false, std::memory_order_relaxed);
  self_gated.store(false, std::memory_order_relaxed);
  issued_.store(0, std::memory_order_relaxed);
  notified_idle_.store(0, std::memory_order_relaxed);
  draining_.store(false, std::memory_order_relaxed);
  context_goes_.store(false, std::memory_order_relaxed);
}

void FlowState::RetiredUpTo(uint64_t number) {
  if (!ipc::RaiseRetired(*block_, number)) {
    NotifyIdle(number);
    return;
  }
  if (!NotifyIdle(number) && raw_flags() != 0 &&
      report_progress_.exchange(false, std::memory_order_seq_cst)) {
    signals_->RingScheduler(index_);
  }
  if (closed_gates.load(std::memory_order_seq_cst) != 0 || draining()) signals_->Wake();
  waiters.NotifyIfAny();
}

bool FlowState::NotifyIdle(uint64_t number) {
  const uint32_t flags = raw_flags();
  if (number < submitted()) return false;
  const bool counted = (flags & ipc::kFlagCounted) != 0;
  if (!counted) ipc::DropBurst(*block_);
  if (flags == 0) return false;
  // Only once: a program may ask repeatedly.
  if (notified_idle_.exchange(number, std::memory_order_relaxed) == number) return true;
  if (counted) EndBurst();
  if (flags != ipc::kFlagCounted) signals_->RingScheduler(index_);
  return true;
}

void FlowState::EndBurst() {
  const TimePoint now = Now();
  ipc::EndBurst(*block_, now);
  // A launch that came just before this has found the burst going on, and has begun none.
  if (!Idle()) ipc::BeginBurst(*block_, now);
}

void FlowState::NotifyDrained() {
  ipc::CountDrain(*block_);
  NotifyIdle(retired());
  signals_->RingScheduler(index_);
}

void FlowState::ResetAfterFork() {
  suspended_.store(false, std::memory_order_relaxed);
  closed_gates.store(0, std::memory_order_relaxed);
  waiters.ResetAfterFork();
}

}  // namespace xsched::preempt
