#include "preempt/gates/queue_state.h"

namespace xsched::preempt {

void QueueState::Begin(const Start& start) {
  index_ = start.index;
  block_ = start.block;
  process_ = start.process;
  signals_ = start.signals;
  clock_ = start.clock;
  gating_.store(start.gating, std::memory_order_relaxed);
  SetLevel(start.level);
  SetConfig(start.config);
  suspended_.store(false, std::memory_order_relaxed);
  self_gated.store(false, std::memory_order_relaxed);
  issued_.store(0, std::memory_order_relaxed);
  told_idle_.store(0, std::memory_order_relaxed);
  draining_.store(false, std::memory_order_relaxed);
}

void QueueState::RetiredUpTo(uint64_t number) {
  uint64_t seen = block_->retired.load(std::memory_order_relaxed);
  do {
    if (seen >= number) {
      TellIdle(number);
      return;
    }
  } while (!block_->retired.compare_exchange_weak(seen, number, std::memory_order_seq_cst));
  if (raw_flags() != 0 && !TellIdle(number) && report_progress_.exchange(false, std::memory_order_seq_cst)) {
    signals_->RingScheduler(index_);
  }
  if (closed_gates.load(std::memory_order_acquire) != 0) signals_->Wake();
  waiters.NotifyIfAny();
}

bool QueueState::TellIdle(uint64_t number) {
  if (raw_flags() == 0 || number < submitted()) return false;
  // A program may ask again and again.
  if (told_idle_.exchange(number, std::memory_order_relaxed) != number) signals_->RingScheduler(index_);
  return true;
}

void QueueState::MarkerReached(uint64_t number) {
  retired_at_ns_.store(Now().time_since_epoch().count(), std::memory_order_relaxed);
  RetiredUpTo(number);
  // Last: the slot may be used again from here on.
  markers_.fetch_sub(1, std::memory_order_release);
}

void QueueState::ResetAfterFork() {
  suspended_.store(false, std::memory_order_relaxed);
  closed_gates.store(0, std::memory_order_relaxed);
  waiters.ResetAfterFork();
}

}  // namespace xsched::preempt
