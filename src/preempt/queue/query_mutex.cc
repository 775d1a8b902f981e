#include "preempt/queue/query_mutex.h"

#include <utility>

namespace xsched::preempt {

bool QueryMutex::TakeWithin(Duration patience) {
  MutexLock lock(mutex_);
  if (taken_) {
    const TimePoint deadline = MonotonicClock::now() + patience;
    while (taken_ && MonotonicClock::now() < deadline) freed_.WaitUntil(mutex_, deadline);
  }
  return !std::exchange(taken_, true);
}

bool QueryMutex::LockWithin(Duration patience) {
  lock_order::Acquiring(LockRank::kStreamQuery);
  if (TakeWithin(patience)) return true;
  lock_order::Released(LockRank::kStreamQuery);
  return false;
}

void QueryMutex::Unlock() {
  {
    MutexLock lock(mutex_);
    taken_ = false;
    freed_.NotifyAll();
  }
  lock_order::Released(LockRank::kStreamQuery);
}

void QueryMutex::ResetAfterFork() {
  mutex_.ResetAfterFork();
  freed_.ResetAfterFork();
  taken_ = false;
  lock_order::Released(LockRank::kStreamQuery);
}

}  // namespace xsched::preempt
