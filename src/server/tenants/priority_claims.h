// How much the priorities of queues count: those that a tenant's queues claim for themselves as
// sched/core/claimed_priorities.h says, and those that an administrator sets as they are. These lower
// nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sched/core/scheduler.h"
#include "server/agent.h"
#include "server/work_budget.h"

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
  void Reconsider(Tenant& tenant) { Reconsider(tenant, std::nullopt); }
  // The tenant, which has no queue, is about to end.
  void Forget(const Tenant& tenant);
  // Passes the queue's hints to the scheduler, as they count.
  void Apply(const Queue& queue) const;
  // Applies the hints of all queues of tenants whose claims have changed what their queues count. This is
  // charged to the users whose queues did that.
  void ApplyChanged(const Queues& queues, WorkBudget& work);

 private:
  struct Change {
    const Tenant* tenant;
    std::optional<uid_t> user;  // nullopt: the tenant has other rights
  };
  void Reconsider(Tenant& tenant, std::optional<uid_t> user);
  bool HasChanged(const Tenant* tenant) const;

  sched::Scheduler& scheduler_;
  std::vector<Change> changed_;
};

// The queue's hints, as they count.
sched::Hints CountedHints(const Queue& queue);
// For the program or the tool that has made this claim: why it counts for less; "": it does not.
std::string CorrectionOf(const Queue& queue);

}  // namespace xsched::server
