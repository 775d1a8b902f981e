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

bool QueryLock::Lock() { return OfThisProcess().ShareWithin(kPatience); }
void QueryLock::Unlock() { ThisProcess().stream_queries.Unshare(); }

bool CaptureLock::Lock() { return OfThisProcess().LockWithin(kPatience); }
void CaptureLock::Unlock() { ThisProcess().stream_queries.Unlock(); }

}  // namespace xsched::preempt
