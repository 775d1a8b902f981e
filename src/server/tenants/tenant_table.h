// All tenants: which one a process belongs to by the rules in use, and what each may do. Without a tenants'
// file, each user is a tenant.
//
// A user, and a tenant that a rule names, stay as long as the server runs, for what has been counted of them.
// But one that a rule makes for each job or the like ends with its last process, because there may be any
// number of them. So does one that the rules in use name no more. Of users, and of what one rule makes, the
// number at a time is limited: one more tenant stands for all further ones.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/subordinate_users.h"
#include "server/tenants/tenant.h"
#include "server/tenants/tenants_file.h"

namespace xsched::server {

class TenantTable {
 public:
  TenantTable(sched::Scheduler& scheduler, const AccessRules& access, SubordinateUsers subordinates = {})
      : scheduler_(scheduler), access_(access), subordinates_(std::move(subordinates)) {}
  TenantTable(const TenantTable&) = delete;
  TenantTable& operator=(const TenantTable&) = delete;

  // The tenant of such a process; of the client's process.
  Tenant& Of(const Peer& peer, const ProcessIdentity& process);
  Tenant& Of(Connection& client);
  // An agent has come: from now on its process counts as one of its tenant. Returns what its program must be
  // told; empty: nothing. REQUIRES: it has no queue.
  std::string Join(Agent& agent);
  // Other rules count from now on, also for the processes and queues that there are.
  void SetRules(TenantRules rules, Agents& agents, Queues& queues, TimePoint now);
  // Forgets those that end with their last process. Call it when an agent or a tool has gone, or after
  // SetRules. No reference that `Of` has returned is valid after it, unless an agent has the tenant.
  void RemoveEnded(PriorityClaims& claims);
  // `visit(tenant)` for each, in the order of their names.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [name, tenant] : tenants_) visit(tenant);
  }
  size_t size() const { return tenants_.size(); }
  const TenantRules& rules() const { return rules_; }

 private:
  Tenant& Named(const std::string& name, const std::string& common, const TenantRights& rights);
  bool GiveMemorySlot(Agent& agent);
  void MoveMemory(Agent& agent);
  static bool TakeFormerSlot(Agent& agent);
  void DropEndedAccounts(Agent& agent) const;

  sched::Scheduler& scheduler_;
  const AccessRules& access_;
  SubordinateUsers subordinates_;
  TenantRules rules_;
  std::map<std::string, Tenant> tenants_;
  std::map<std::string, size_t> told_apart_;  // how many, by the name of the one that stands for further ones
  uint64_t next_id_ = 1;
};

}  // namespace xsched::server
