#include "preempt/query_lock.h"

#include <pthread.h>

#include "base/mutex.h"

namespace xsched::preempt {
namespace {

constinit Mutex mutex;

void InstallForkHandler() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(nullptr, nullptr, [] { mutex.ResetAfterFork(); }); });
}

}  // namespace

void QueryLock::Lock() {
  InstallForkHandler();
  mutex.Lock();
}

void QueryLock::Unlock() { mutex.Unlock(); }

}  // namespace xsched::preempt
