// Locks for code that runs in foreign processes (std::mutex needs libstdc++ at run time).
#pragma once

#include <pthread.h>

#include "base/clock.h"

namespace xsched {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() { pthread_mutex_lock(&mutex_); }
  bool TryLock() { return pthread_mutex_trylock(&mutex_) == 0; }
  void Unlock() { pthread_mutex_unlock(&mutex_); }
  // Makes the lock free in a forked child, where its owner may not exist any more.
  void ResetAfterFork() { mutex_ = PTHREAD_MUTEX_INITIALIZER; }

 private:
  friend class Condition;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class [[nodiscard]] MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class Condition {
 public:
  // REQUIRES: the caller holds `mutex`.
  void Wait(Mutex& mutex) { pthread_cond_wait(&condition_, &mutex.mutex_); }
  // As Wait, but returns at `deadline` at the latest.
  void WaitUntil(Mutex& mutex, TimePoint deadline) {
    auto since = deadline.time_since_epoch();
    timespec until{};
    until.tv_sec = since / std::chrono::seconds(1);
    until.tv_nsec = (since % std::chrono::seconds(1)).count();
    pthread_cond_clockwait(&condition_, &mutex.mutex_, CLOCK_MONOTONIC, &until);
  }
  void NotifyAll() { pthread_cond_broadcast(&condition_); }
  // In a forked child: forgets the waiting threads, which do not exist there.
  void ResetAfterFork() { condition_ = PTHREAD_COND_INITIALIZER; }

 private:
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace xsched
