// Answers the requests of tools (list, usage, hints, level and launch config, policy, windows, status,
// recordings), within the rights of their user. Tools can change nothing else.
//
// Answers are not stored: if a tool's buffer has no room, the rest of the answer is made when it has read.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/connections.h"
#include "server/process_facts.h"
#include "server/queues.h"
#include "server/recordings.h"
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
  // True if the tool has not taken all of an answer yet. Its requests wait until then.
  bool IsListing(const Connection& tool) const { return unfinished_.contains(tool.id); }
  // Call if there may be room for more of the answer. REQUIRES: IsListing. False: the tool is gone.
  bool ContinueListing(Connection& tool, TimePoint now);
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
  // An answer in many messages.
  struct Answer {
    std::variant<Listing, UsageAnswer> what;
    TimePoint blocked_since{};
  };

  bool List(Connection& tool, TimePoint now);
  bool SendUsage(Connection& tool, TimePoint now);
  bool Begin(Connection& tool, Answer answer, TimePoint now);
  bool Send(Connection& tool, Answer& answer, TimePoint now);
  bool Send(Connection& tool, Listing& listing, TimePoint now);
  ipc::QueueInfo Describe(Queue& queue, const Peer& reader, TimePoint now);
  void DescribeWait(ipc::QueueInfo& info, const Queue& queue, const sched::QueueStats& stats,
                    const Peer& reader, TimePoint now) const;
  // `change(queue)` for each queue that the request names and the tool's user may change; false ends it.
  // Returns how many there were.
  template <typename Request, typename Change>
  uint32_t ForEachNamed(const Connection& tool, const Request& request, Change&& change);
  bool SetHints(Connection& tool, const ipc::SetHints& request, TimePoint now);
  bool SetConfig(Connection& tool, const ipc::SetConfig& request, TimePoint now);
  bool SetPolicy(Connection& tool, const ipc::SetPolicy& request, TimePoint now);
  // Answers a request that changes something, and adds it to the audit log. `count`: of changed queues.
  bool Conclude(Connection& tool, AuditRecord record, XResult result, uint32_t count, const std::string& text,
                TimePoint now);
  bool SetActiveWindow(Connection& tool, const ipc::SetActiveWindow& request);
  bool SendStatus(Connection& tool, TimePoint now);

  Parts parts_;
  TimePoint started_;
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  std::map<uint64_t, Answer> unfinished_;  // by the tool's connection
};

}  // namespace xsched::server
