// The answer to kGetUsage, made while it is sent: first the accounts of the processes, each with the requests
// of its queues if they are asked for, then those of the users, and then the tenants.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
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
  enum class Part : uint8_t { kProcesses, kUsers, kTenants, kReply };
  // The first of the agent's queues with this index or a higher one.
  struct NextQueue {
    uint64_t agent = 0;
    uint32_t index = 0;
  };
  // Puts what comes next into `unsent_`, or goes on to the next part. It is a few messages only, because a
  // user can leave thousands of answers unread.
  void PrepareNext(Connection& tool, TimePoint now);
  // Puts the accounts of the next agent into `unsent_`. Of one that the reader may not see, it only counts
  // what its tenant has had until now.
  void ReadNextAgent(TimePoint now);
  Agent* FindOpen(uint64_t id) const;
  void Describe(Agent& agent, TimePoint now);
  sched::QueueStats BringUpToDate(Queue& queue, TimePoint now);
  // An agent without queues counts as one, too.
  void CountRead(size_t queues);
  bool MaySee(const Agent& agent) const;
  std::set<const Tenant*> TenantsOf(Connection& tool);
  static void CountQueue(ipc::Usage& account, const Queue& queue, const sched::QueueStats& stats,
                         TimePoint now);
  // Put what comes next into `unsent_`. False: there is no more.
  bool PrepareQueue();
  bool PrepareQueueFrom(const Agent& agent);
  bool PrepareOfUser();
  bool PrepareTenants(Connection& tool);

  Parts parts_;
  Peer reader_;
  bool with_queues_;
  Part next_ = Part::kProcesses;
  std::vector<uint64_t> agents_;         // by connection; those that have not been read, the next one last
  std::optional<NextQueue> next_queue_;  // none: no queue is described before the next agent
  std::optional<UsageMeter::Position> last_;  // the last user's account
  std::string last_tenant_;
  std::deque<std::variant<ipc::Usage, ipc::QueueRequests, ipc::Tenant>> unsent_;
  uint32_t sent_ = 0;
  size_t read_ = 0;  // queues, and agents without any, in this round
};

}  // namespace xsched::server
