// How much the priorities of a tenant's queues count.
//
// No queue of a tenant counts for more than the tenant may claim. If one claims more, all queues of the
// tenant count for less by the same amount. So they keep their order among each other, and nobody else is
// held by a claim that was not allowed: as with nice, who wants one program to come before another lowers the
// other.
//
//   may claim 0      claimed 10  0  -5       counts as 0  -10  -15
//
// What an administrator sets counts as it is, and lowers nothing.
#pragma once

#include <string>
#include <vector>

#include "sched/core/scheduler.h"
#include "server/agent.h"

namespace xsched::server {

class Queues;

class PriorityClaims {
 public:
  explicit PriorityClaims(sched::Scheduler& scheduler) : scheduler_(scheduler) {}

  // The queue counts as one of its tenant, with its present claim; or not any more. REQUIRES (Remove): it
  // did.
  void Add(const Queue& queue);
  void Remove(const Queue& queue);
  // Other rights of the tenant count from now on.
  void Reconsider(Tenant& tenant);
  // The tenant, which has no queue, is about to end.
  void Forget(const Tenant& tenant) { std::erase(changed_, &tenant); }
  // Passes the queue's hints to the scheduler, as they count.
  void Apply(const Queue& queue) const;
  // Applies the hints of all queues of tenants whose claims have changed what their queues count.
  void ApplyChanged(const Queues& queues);

 private:
  sched::Scheduler& scheduler_;
  std::vector<const Tenant*> changed_;
};

// The queue's hints, as they count.
sched::Hints CountedHints(const Queue& queue);
// For the program or the tool that has made this claim: why it counts for less; "": it does not.
std::string CorrectionOf(const Queue& queue);

}  // namespace xsched::server
