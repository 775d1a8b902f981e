#include "preempt/scheduling/driver_caller.h"

namespace xsched::preempt {
namespace {

// Failed requests are tried again after this time.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(5);

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
  for (bool again = false;; again = !caller.DoRequested()) caller.AwaitRequests(again);
}

void DriverCaller::AwaitRequests(bool again) {
  MutexLock lock(mutex_);
  if (!again) {
    while (!requested_) changed_.Wait(mutex_);
    return;
  }
  const TimePoint retry_at = MonotonicClock::now() + kTryAgainAfter;
  while (!requested_ && MonotonicClock::now() < retry_at) changed_.WaitUntil(mutex_, retry_at);
}

bool DriverCaller::DoRequested() {
  {
    MutexLock lock(mutex_);
    requested_ = false;
    ++begun_;
  }
  bool all = true;
  for (uint32_t index = 0; index < queues_.end_of_used(); ++index) {
    if (work_[index].load(std::memory_order_relaxed) == 0) continue;
    all &= Do(index, work_[index].exchange(0, std::memory_order_acq_rel));
  }
  MutexLock lock(mutex_);
  done_ = begun_;
  changed_.NotifyAll();
  return all;
}

// False: something is to be tried again.
bool DriverCaller::Do(uint32_t index, uint32_t work) {
  // The driver ends with the process.
  if (process_.shut_down()) return true;
  if ((work & kFinish) != 0) {
    queues_.Finish(index);
    return true;
  }
  XQueuePin queue = queues_.Pin(queues_.HandleAt(index));
  if (!queue) return true;
  if ((work & kProgress) != 0) {
    queue->AskDriver();
    queues_.FinishIfDrained(*queue);
  }
  if ((work & kUrgency) == 0 || urgencies_.Apply(*queue)) return true;
  work_[index].fetch_or(kUrgency, std::memory_order_relaxed);
  return false;
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
