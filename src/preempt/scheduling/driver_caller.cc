#include "preempt/scheduling/driver_caller.h"

#include "base/thread.h"

namespace xsched::preempt {
namespace {

// What could not be done now is tried again after this.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(5);

}  // namespace

bool DriverCaller::Request(uint32_t index, Work work) {
  // Asked already, and not begun yet: the scheduler's questions come often.
  if ((work_[index].fetch_or(work, std::memory_order_acq_rel) & work) != 0) return true;
  MutexLock lock(mutex_);
  if (!running_) {
    pthread_t thread;
    if (StartQuietThread(&thread, &DriverCaller::Main, this) != 0) {
      work_[index].fetch_and(~uint32_t{work}, std::memory_order_relaxed);
      return false;
    }
    pthread_setname_np(thread, "xsched-driver");
    pthread_detach(thread);
    running_ = true;
  }
  requested_ = true;
  changed_.NotifyAll();
  return true;
}

void DriverCaller::AwaitUntil(TimePoint deadline) {
  MutexLock lock(mutex_);
  if (!running_) return;
  const uint64_t round = begun_ + (requested_ ? 1 : 0);
  while (done_ < round && MonotonicClock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
}

void* DriverCaller::Main(void* self) {
  static_cast<DriverCaller*>(self)->Run();
  return nullptr;
}

void DriverCaller::Run() {
  bool again = false;
  for (;;) {
    {
      MutexLock lock(mutex_);
      const TimePoint retry_at = MonotonicClock::now() + kTryAgainAfter;
      while (!requested_ && !(again && MonotonicClock::now() >= retry_at)) {
        if (again) {
          changed_.WaitUntil(mutex_, retry_at);
        } else {
          changed_.Wait(mutex_);
        }
      }
      requested_ = again = false;
      ++begun_;
    }
    for (uint32_t index = 0; index < queues_.end_of_used(); ++index) {
      if (work_[index].load(std::memory_order_relaxed) == 0) continue;
      const uint32_t work = work_[index].exchange(0, std::memory_order_acq_rel);
      if (!Do(index, work)) again = true;
    }
    MutexLock lock(mutex_);
    done_ = begun_;
    changed_.NotifyAll();
  }
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
  if ((work & kProgress) != 0) queue->AskDriver();
  if ((work & kUrgency) == 0 || urgencies_.Tell(*queue)) return true;
  work_[index].fetch_or(kUrgency, std::memory_order_relaxed);
  return false;
}

void DriverCaller::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  running_ = requested_ = false;
  done_ = begun_;
  for (std::atomic<uint32_t>& work : work_) work.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
