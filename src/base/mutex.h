// Locks for code that runs in foreign processes (std::mutex needs libstdc++ at run time). Each has its place
// in the order of all locks (lock_order.inc), as its type.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>

#include "base/clock.h"
#include "base/lock_order.h"
#include "base/no_cancellation.h"
#include "base/thread_annotations.h"

namespace xsched {

template <LockRank kRank>
class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() {
    lock_order::Acquiring(kRank);
    pthread_mutex_lock(&mutex_);
  }
  bool TryLock() TRY_ACQUIRE(true) {
    lock_order::Acquiring(kRank);
    if (pthread_mutex_trylock(&mutex_) == 0) return true;
    lock_order::Released(kRank);
    return false;
  }
  void Unlock() RELEASE() {
    pthread_mutex_unlock(&mutex_);
    lock_order::Released(kRank);
  }
  // For the analysis, where it cannot see that this thread holds the lock.
  void AssertHeld() const ASSERT_CAPABILITY(this) { lock_order::CheckHeld(kRank); }
  // Makes the lock free in a forked child, where its owner may not exist any more. The child has one thread,
  // so what the lock guards is then that thread's.
  void ResetAfterFork() ASSERT_CAPABILITY(this) {
    mutex_ = PTHREAD_MUTEX_INITIALIZER;
    lock_order::Released(kRank);
  }

 private:
  friend class Condition;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

template <LockRank kRank>
class [[nodiscard]] SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex<kRank>& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex<kRank>& mutex_;
};

class Condition {
 public:
  template <LockRank kRank>
  void Wait(Mutex<kRank>& mutex) REQUIRES(mutex) {
    Prepare();
    const NoCancellation waits_to_its_end;
    pthread_cond_wait(&condition_, &mutex.mutex_);
  }
  // As Wait, but returns at `deadline` at the latest.
  template <LockRank kRank>
  void WaitUntil(Mutex<kRank>& mutex, TimePoint deadline) REQUIRES(mutex) {
    auto since = deadline.time_since_epoch();
    timespec until{};
    until.tv_sec = since / std::chrono::seconds(1);
    until.tv_nsec = (since % std::chrono::seconds(1)).count();
    Prepare();
    const NoCancellation waits_to_its_end;
    pthread_cond_timedwait(&condition_, &mutex.mutex_, &until);
  }
  void NotifyAll() {
    // Otherwise no thread has ever waited.
    if (prepared_.load(std::memory_order_acquire)) pthread_cond_broadcast(&condition_);
  }
  // In a forked child: forgets the waiting threads, which do not exist there.
  void ResetAfterFork() { prepared_.store(false, std::memory_order_relaxed); }

 private:
  // Sets the clock of the condition, with the mutex held. Global conditions are constants at first, which
  // have no clock; and glibc before 2.30 has no pthread_cond_clockwait.
  void Prepare() {
    if (prepared_.load(std::memory_order_relaxed)) return;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
    prepared_.store(true, std::memory_order_release);
  }

  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  std::atomic<bool> prepared_ = false;
};

}  // namespace xsched
