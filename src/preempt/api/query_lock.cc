#include "preempt/api/query_lock.h"

#include "base/fork_handler.h"
#include "preempt/api/process.h"

namespace xsched::preempt {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(40);

QueryMutex& OfThisProcess() {
  // Its own handler: captures are also begun in processes without an agent.
  static constinit ForkHandler handler = {[] { ThisProcess().stream_queries.ResetAfterFork(); }};
  handler.Install();
  return ThisProcess().stream_queries;
}

}  // namespace

bool StreamLock::Lock(bool alone) {
  QueryMutex& mutex = OfThisProcess();
  return alone ? mutex.LockWithin(kPatience) : mutex.ShareWithin(kPatience);
}

void StreamLock::Unlock(bool alone) {
  QueryMutex& mutex = ThisProcess().stream_queries;
  alone ? mutex.Unlock() : mutex.Unshare();
}

}  // namespace xsched::preempt
