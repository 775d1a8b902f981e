// The part of XQueue for platforms without gates, whose markers have to be looked at: who launches waits.
#include "preempt/queue/xqueue.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {
namespace {

// Who waits looks all the time at first, for short commands; then now and then.
constexpr Duration kLookClosely = std::chrono::microseconds(50);
constexpr Duration kNap = std::chrono::microseconds(30);

// A queue that may run, is full, and retires nothing for so long may be waiting for the very thread that
// waits here: to write to memory that the device looks at.
constexpr Duration kLetGoAfter = std::chrono::seconds(1);

}  // namespace

void XQueue::PollMarkers() {
  hwq_->ops.poll_markers(hwq_->impl);
  gates_.OnRetired(retired(), TimePoint(Duration(retired_at_ns_.load(std::memory_order_relaxed))));
}

// Returns when done(). REQUIRES: the queue stays meanwhile.
template <typename Done>
void XQueue::WaitPolling(Done&& done) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  TimePoint closely_until = MonotonicClock::now() + kLookClosely;
  while (!done()) {
    if (Held()) {
      MutexLock lock(wait_mutex_);
      while (Held()) wait_condition_.Wait(wait_mutex_);
      closely_until = MonotonicClock::now() + kLookClosely;
      continue;
    }
    PollMarkers();
    const TimePoint now = MonotonicClock::now();
    if (now < closely_until) continue;
    MutexLock lock(wait_mutex_);
    wait_condition_.WaitUntil(wait_mutex_, now + kNap);
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

// For the submit worker, which the queue outlives.
void XQueue::WaitUntilMayLaunchPolling(uint64_t number) {
  if (!Held()) MarkProgress();
  WaitPolling([&] { return MayLaunch(number); });
}

void XQueue::WaitBefore(uint64_t number) {
  if (!MustWaitBefore(number)) return;
  // Whoever takes the queue away lets us go, and waits for that.
  XQueuePin pin = XQueueTable::Pin(handle());
  if (!pin) return;
  uint64_t seen = retired();
  TimePoint since = MonotonicClock::now();
  WaitPolling([&] {
    if (!MustWaitBefore(number)) return true;
    const TimePoint now = MonotonicClock::now();
    if (retired() != seen || Held()) {
      seen = retired();
      since = now;
    }
    if (now >= since + kLetGoAfter) let_go_at_.store(seen, std::memory_order_relaxed);
    return !Held() && let_go_at_.load(std::memory_order_relaxed) == seen;
  });
}

}  // namespace xsched::preempt
