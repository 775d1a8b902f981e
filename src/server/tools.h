// Answers the requests of tools (list, usage, hints, level and launch config, policy, windows, status,
// recordings), within the rights of their user. Tools can change nothing else.
//
// Answers are not stored: if a tool's buffer has no room, the rest of the answer is made when it has read.
// What is asked of many queues is done in parts, one in each round.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/connections.h"
#include "server/process_facts.h"
#include "server/queue_change.h"
#include "server/queues.h"
#include "server/recording/recordings.h"
#include "server/sent.h"
#include "server/tenants/audit_log.h"
#include "server/tenants/tenant_table.h"
#include "server/usage_answer.h"
#include "server/work_budget.h"

namespace xsched::server {

class Tools {
 public:
  // What the tools ask about.
  struct Parts {
    Connections& connections;
    Agents& agents;
    Queues& queues;
    sched::Scheduler& scheduler;
    const AccessRules& access;
    ProcessFactsTable& facts;
    Recordings& recordings;
    UsageMeter& usage;
    WorkBudget& work;
    TenantTable& tenants;
    AuditLog& audit;
  };
  Tools(const Parts& parts, TimePoint now) : parts_(parts), started_(now) {}

  // False: the message breaks the protocol, or the tool is gone.
  bool HandleMessage(Connection& tool, const ipc::Packet& packet, TimePoint now);
  // True if the tool's next request may be read. Not while it leaves earlier answers unread: then IsAnswering
  // until it has read them.
  bool MayAsk(Connection& tool, TimePoint now);
  // True if a request of the tool has not been answered to its end yet. Its further requests wait until then.
  bool IsAnswering(const Connection& tool) const { return unfinished_.contains(tool.id); }
  // Call if there may be room for more of the answer. REQUIRES: IsAnswering. False: the tool is gone.
  bool Continue(Connection& tool, TimePoint now);
  // Closes the connections of tools that leave an answer unread. Returns when to call it again.
  TimePoint CloseUnreading(TimePoint now);
  void Remove(const Connection& tool) { unfinished_.erase(tool.id); }

 private:
  // An answer to kList.
  struct Listing {
    std::vector<sched::QueueId> queues;  // in the order in which they are sent
    size_t next = 0;
    uint32_t sent = 0;
  };
  struct Changing {
    QueueChange change;
    std::optional<ipc::Reply> reply;  // when all is changed
  };
  // All is sent, but there is no room for another answer.
  struct Unread {};
  // An answer in many messages, or to a request that takes many rounds.
  struct Answer {
    std::variant<Listing, UsageAnswer, Changing, Unread> what;
    TimePoint blocked_since{};
  };

  bool List(Connection& tool, TimePoint now);
  bool SendUsage(Connection& tool, const ipc::GetUsage& request, TimePoint now);
  bool Begin(Connection& tool, Answer answer, TimePoint now);
  Sent Send(Connection& tool, Answer& answer, TimePoint now);
  Sent Send(Connection& tool, Listing& listing, TimePoint now);
  ipc::QueueInfo Describe(Queue& queue, const Peer& reader, TimePoint now);
  void DescribeWait(ipc::QueueInfo& info, const Queue& queue, const sched::QueueStats& stats,
                    const Peer& reader, TimePoint now) const;
  Sent Send(Connection& tool, Changing& changing, TimePoint now);
  // A request to change queues: kSetHints or kSetConfig.
  template <typename Request>
  bool Change(Connection& tool, const Request& request, TimePoint now);
  bool SetPolicy(Connection& tool, const ipc::SetPolicy& request, TimePoint now);
  // Adds a request that changes something, and its answer, to the audit log.
  void Audit(Connection& tool, AuditRecord record, XResult result, const std::string& text, TimePoint now);
  bool SetActiveWindow(Connection& tool, const ipc::SetActiveWindow& request);
  bool SendStatus(Connection& tool, TimePoint now);

  Parts parts_;
  TimePoint started_;
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  std::map<uint64_t, Answer> unfinished_;  // by the tool's connection
};

}  // namespace xsched::server
