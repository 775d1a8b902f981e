// The state of the process's query lock (api/query_lock.h): a lock for which a thread waits only so long.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace xsched::preempt {

class QueryMutex {
 public:
  // False: other threads have held it for `patience`.
  bool LockWithin(Duration patience) EXCLUDES(mutex_);
  void Unlock() EXCLUDES(mutex_);
  void ResetAfterFork();

 private:
  bool TakeWithin(Duration patience) EXCLUDES(mutex_);

  Mutex<LockRank::kStreamQueryState> mutex_;
  Condition freed_;
  bool taken_ GUARDED_BY(mutex_) = false;
};

}  // namespace xsched::preempt
