#include "preempt/queue/query_mutex.h"

namespace xsched::preempt {

template <typename IsFree>
bool QueryMutex::AwaitFree(Duration patience, IsFree&& is_free) {
  if (is_free()) return true;
  const TimePoint deadline = MonotonicClock::now() + patience;
  while (!is_free() && MonotonicClock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
  return is_free();
}

bool QueryMutex::TakeAlone(Duration patience) {
  MutexLock lock(mutex_);
  ++locking_;
  const bool taken = AwaitFree(patience, [this]() REQUIRES(mutex_) { return !locked_ && sharing_ == 0; });
  --locking_;
  locked_ |= taken;
  if (!taken) changed_.NotifyAll();
  return taken;
}

bool QueryMutex::TakeShared(Duration patience) {
  MutexLock lock(mutex_);
  if (!AwaitFree(patience, [this]() REQUIRES(mutex_) { return !locked_ && locking_ == 0; })) return false;
  ++sharing_;
  return true;
}

bool QueryMutex::LockWithin(Duration patience) {
  lock_order::Acquiring(LockRank::kStreamQuery);
  if (TakeAlone(patience)) return true;
  lock_order::Released(LockRank::kStreamQuery);
  return false;
}

bool QueryMutex::ShareWithin(Duration patience) {
  lock_order::Acquiring(LockRank::kStreamQuery);
  if (TakeShared(patience)) return true;
  lock_order::Released(LockRank::kStreamQuery);
  return false;
}

void QueryMutex::Unlock() {
  {
    MutexLock lock(mutex_);
    locked_ = false;
    changed_.NotifyAll();
  }
  lock_order::Released(LockRank::kStreamQuery);
}

void QueryMutex::Unshare() {
  {
    MutexLock lock(mutex_);
    if (--sharing_ == 0) changed_.NotifyAll();
  }
  lock_order::Released(LockRank::kStreamQuery);
}

void QueryMutex::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  locked_ = false;
  sharing_ = locking_ = 0;
  lock_order::Released(LockRank::kStreamQuery);
}

}  // namespace xsched::preempt
