// The state of the process's query lock (api/query_lock.h): any number of queries have it together, a capture
// that begins has it alone. A thread waits for it only so long.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace xsched::preempt {

class QueryMutex {
 public:
  // False: other threads have had it for `patience`. While a thread waits to have it alone, no other thread
  // begins to share it.
  bool LockWithin(Duration patience) EXCLUDES(mutex_);
  void Unlock() EXCLUDES(mutex_);
  bool ShareWithin(Duration patience) EXCLUDES(mutex_);
  void Unshare() EXCLUDES(mutex_);
  void ResetAfterFork();

 private:
  template <typename IsFree>
  bool AwaitFree(Duration patience, IsFree&& is_free) REQUIRES(mutex_);
  bool TakeAlone(Duration patience) EXCLUDES(mutex_);
  bool TakeShared(Duration patience) EXCLUDES(mutex_);

  Mutex<LockRank::kStreamQueryState> mutex_;
  Condition changed_;
  bool locked_ GUARDED_BY(mutex_) = false;
  int sharing_ GUARDED_BY(mutex_) = 0;
  int locking_ GUARDED_BY(mutex_) = 0;  // threads that wait to have it alone
};

}  // namespace xsched::preempt
