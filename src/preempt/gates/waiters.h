// Threads that wait for a queue's progress. While there are none, notifying costs one load.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace xsched::preempt {

class Waiters {
 public:
  // Returns when done(). What done() reads must be written before NotifyIfAny.
  template <typename Done>
  void Await(Done&& done) {
    // seq_cst, against NotifyIfAny: either done() sees the change, or the notifier sees us.
    count_.fetch_add(1, std::memory_order_seq_cst);
    mutex_.Lock();
    while (!done()) moved_.Wait(mutex_);
    mutex_.Unlock();
    count_.fetch_sub(1, std::memory_order_seq_cst);
  }

  // Returns at `deadline`, or when notified meanwhile.
  void Nap(TimePoint deadline) {
    count_.fetch_add(1, std::memory_order_seq_cst);
    mutex_.Lock();
    moved_.WaitUntil(mutex_, deadline);
    mutex_.Unlock();
    count_.fetch_sub(1, std::memory_order_seq_cst);
  }

  void NotifyIfAny() {
    if (count_.load(std::memory_order_seq_cst) != 0) Notify();
  }
  void Notify() {
    MutexLock lock(mutex_);
    moved_.NotifyAll();
  }

  void ResetAfterFork() {
    mutex_.ResetAfterFork();
    moved_.ResetAfterFork();
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  Mutex<LockRank::kWaiters> mutex_;
  Condition moved_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace xsched::preempt
