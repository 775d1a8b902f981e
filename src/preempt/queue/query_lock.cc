#include "preempt/queue/query_lock.h"

#include <pthread.h>

#include "base/mutex.h"

namespace xsched::preempt {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(40);

constinit Mutex mutex;  // held for moments only
constinit Condition freed;
constinit bool taken = false;

void InstallForkHandler() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      mutex.ResetAfterFork();
      freed.ResetAfterFork();
      taken = false;
    });
  });
}

}  // namespace

bool QueryLock::Lock() {
  InstallForkHandler();
  MutexLock lock(mutex);
  if (taken) {
    const TimePoint deadline = MonotonicClock::now() + kPatience;
    while (taken && MonotonicClock::now() < deadline) freed.WaitUntil(mutex, deadline);
    if (taken) return false;
  }
  taken = true;
  return true;
}

void QueryLock::Unlock() {
  MutexLock lock(mutex);
  taken = false;
  freed.NotifyAll();
}

}  // namespace xsched::preempt
