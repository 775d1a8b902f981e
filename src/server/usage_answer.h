// The answer to kGetUsage, made while it is sent: first the accounts of the processes, each with the requests
// of its queues if they are asked for, then those of the users, and then the tenants.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "ipc/messages.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/connection.h"
#include "server/queues.h"
#include "server/sent.h"
#include "server/tenants/tenant_table.h"
#include "server/usage_meter.h"
#include "server/work_budget.h"

namespace xsched::server {

class UsageAnswer {
 public:
  // What it is about.
  struct Parts {
    Agents& agents;
    Queues& queues;
    sched::Scheduler& scheduler;
    const AccessRules& access;
    UsageMeter& usage;
    TenantTable& tenants;
    WorkBudget& work;
  };
  UsageAnswer(const Parts& parts, Connection& tool, bool with_queues);

  // Sends as much as the tool's buffer takes, and not more than kMaxAccountsPerRound accounts and tenants.
  Sent Send(Connection& tool, TimePoint now);

 private:
  // Puts the accounts of the next agent into `unsent_`. Of one that the reader may not see, it only counts
  // what its tenant has had until now.
  void ReadNextAgent(TimePoint now);
  void Describe(Agent& agent, TimePoint now);
  sched::QueueStats BringUpToDate(Queue& queue, TimePoint now);
  void CountRead(const Agent& agent);
  bool MaySee(const Agent& agent) const;
  std::set<const Tenant*> TenantsOf(Connection& tool);
  void DescribeQueues(const Agent& agent);
  static void CountQueue(ipc::Usage& account, const Queue& queue, const sched::QueueStats& stats,
                         TimePoint now);
  // Put what comes next into `unsent_`. False: there is no more.
  bool PrepareOfUser();
  bool PrepareTenants(Connection& tool);

  Parts parts_;
  Peer reader_;
  bool with_queues_;
  std::vector<uint64_t> agents_;  // by connection; those that have not been read, the next one last
  std::optional<UsageMeter::Position> last_;  // the last user's account
  bool tenants_prepared_ = false;
  std::deque<std::variant<ipc::Usage, ipc::QueueRequests, ipc::Tenant>> unsent_;
  uint32_t sent_ = 0;
  size_t queues_read_ = 0;  // in this round
};

}  // namespace xsched::server
