#include "preempt/scheduling/driver_caller.h"

#include <algorithm>

namespace xsched::preempt {
namespace {

// Failed requests are tried again after this time.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(5);

// While others wait for the end of a held queue's commands, it is polled. It becomes known later by this part
// of the time that they take.
constexpr int kPartOfOverrun = 16;
constexpr Duration kPollAtOnce = std::chrono::microseconds(50);
constexpr Duration kPollSeldom = std::chrono::milliseconds(20);

}  // namespace

bool DriverCaller::Request(uint32_t index, Work work) {
  if (work == kGates) return gate_openers_.Request(index);
  // It is requested already, and not begun. This is frequent, because the scheduler queries often.
  if ((work_[index].fetch_or(work, std::memory_order_acq_rel) & work) != 0) return true;
  MutexLock lock(mutex_);
  if (!EnsureThread()) {
    work_[index].fetch_and(~uint32_t{work}, std::memory_order_relaxed);
    return false;
  }
  requested_ = true;
  changed_.NotifyAll();
  return true;
}

bool DriverCaller::EnsureThread() {
  if (!running_) running_ = start_thread_("xsched-driver", &DriverCaller::Main, this) == 0;
  return running_;
}

void DriverCaller::AwaitUntil(TimePoint deadline) {
  MutexLock lock(mutex_);
  if (!running_) return;
  const uint64_t round = begun_ + (requested_ ? 1 : 0);
  while (done_ < round && MonotonicClock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
}

void* DriverCaller::Main(void* self) {
  auto& caller = *static_cast<DriverCaller*>(self);
  for (TimePoint next = kNever;; next = caller.DoRequested(MonotonicClock::now())) caller.AwaitRequests(next);
}

void DriverCaller::AwaitRequests(TimePoint next) {
  MutexLock lock(mutex_);
  while (!requested_ && MonotonicClock::now() < next) {
    if (next == kNever) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, next);
    }
  }
}

TimePoint DriverCaller::DoRequested(TimePoint now) {
  {
    MutexLock lock(mutex_);
    requested_ = false;
    ++begun_;
  }
  bool try_again = false;
  bool poll = false;
  for (uint32_t index = 0; index < queues_.end_of_used(); ++index) {
    if (work_[index].load(std::memory_order_relaxed) == 0) continue;
    const Next next = Do(index, work_[index].exchange(0, std::memory_order_acq_rel));
    try_again |= next == Next::kTryAgain;
    poll |= next == Next::kPoll;
  }
  polls_since_ = !poll ? kNever : std::min(polls_since_, now);
  MutexLock lock(mutex_);
  done_ = begun_;
  changed_.NotifyAll();
  if (poll) return now + std::clamp((now - polls_since_) / kPartOfOverrun, kPollAtOnce, kPollSeldom);
  return try_again ? now + kTryAgainAfter : kNever;
}

DriverCaller::Next DriverCaller::Do(uint32_t index, uint32_t work) {
  // The driver ends with the process.
  if (process_.shut_down()) return Next::kNothing;
  if ((work & kFinish) != 0) {
    queues_.Finish(index);
    return Next::kNothing;
  }
  XQueuePin queue = queues_.Pin(queues_.HandleAt(index));
  if (!queue) return Next::kNothing;
  Next next = Next::kNothing;
  if ((work & kProgress) != 0) {
    queue->AskDriver();
    queues_.FinishIfDrained(*queue);
    if (queue->OverrunIsPolled()) {
      work_[index].fetch_or(kProgress, std::memory_order_relaxed);
      next = Next::kPoll;
    }
  }
  if ((work & kUrgency) == 0 || urgencies_.Apply(*queue)) return next;
  work_[index].fetch_or(kUrgency, std::memory_order_relaxed);
  return next == Next::kNothing ? Next::kTryAgain : next;
}

void DriverCaller::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  gate_openers_.ResetAfterFork();
  running_ = requested_ = false;
  polls_since_ = kNever;
  done_ = begun_;
  for (std::atomic<uint32_t>& work : work_) work.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
