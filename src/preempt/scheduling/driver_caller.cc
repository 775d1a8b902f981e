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
  TimePoint next = kNever;
  for (uint32_t index = 0; index < queues_.end_of_used(); ++index) {
    if (work_[index].load(std::memory_order_relaxed) == 0) continue;
    next = std::min(next, Do(index, work_[index].exchange(0, std::memory_order_acq_rel), now));
  }
  MutexLock lock(mutex_);
  done_ = begun_;
  changed_.NotifyAll();
  return next;
}

// Returns when to come again; kNever: when something is requested.
TimePoint DriverCaller::Do(uint32_t index, uint32_t work, TimePoint now) {
  // The driver ends with the process.
  if (process_.shut_down()) return kNever;
  if ((work & kFinish) != 0) {
    queues_.Finish(index);
    return kNever;
  }
  XQueuePin queue = queues_.Pin(queues_.HandleAt(index));
  if (!queue) return kNever;
  TimePoint next = kNever;
  if ((work & kProgress) != 0) {
    polls_since_[index] = now;
    queue->AskDriver();
  } else if ((work & kPoll) != 0) {
    queue->PollOverrun();
  }
  if ((work & (kProgress | kPoll)) != 0) {
    queues_.FinishIfDrained(*queue);
    if (queue->OverrunIsPolled()) next = PollAgain(index, now);
  }
  if ((work & kUrgency) == 0 || urgencies_.Apply(*queue)) return next;
  work_[index].fetch_or(kUrgency, std::memory_order_relaxed);
  return std::min(next, now + kTryAgainAfter);
}

TimePoint DriverCaller::PollAgain(uint32_t index, TimePoint now) {
  work_[index].fetch_or(kPoll, std::memory_order_relaxed);
  return now + std::clamp((now - polls_since_[index]) / kPartOfOverrun, kPollAtOnce, kPollSeldom);
}

void DriverCaller::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  gate_openers_.ResetAfterFork();
  running_ = requested_ = false;
  done_ = begun_;
  for (std::atomic<uint32_t>& work : work_) work.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
