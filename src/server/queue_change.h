// A tool's request to change the hints or the configuration of a queue, or of all queues of a process: of
// many queues, a part in each round, so that nobody else has to wait for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "server/access.h"
#include "server/agents.h"
#include "server/connection.h"
#include "server/queues.h"
#include "server/tenants/audit_log.h"
#include "server/work_budget.h"

namespace xsched::server {

class QueueChange {
 public:
  struct Parts {
    Agents& agents;
    Queues& queues;
    const AccessRules& access;
    WorkBudget& work;
  };
  using Request = std::variant<ipc::SetHints, ipc::SetConfig>;
  // REQUIRES: a request of which WhatIsWrong says nothing.
  QueueChange(const Parts& parts, const Connection& tool, const Request& request);

  // What is wrong with the request whichever queue it is about; empty: nothing.
  static std::string WhatIsWrong(const ipc::SetHints& request);
  static std::string WhatIsWrong(const ipc::SetConfig& request);

  // Changes the next queues, kMaxChangedPerRound at most. False: there are more.
  bool Continue();
  struct Outcome {
    XResult result = kXSchedSuccess;
    uint32_t count = 0;  // of queues that are changed
    std::string text{};
  };
  // REQUIRES: Continue has returned true.
  Outcome outcome() const;
  // Who made the request and what became of it is for the caller to add.
  const AuditRecord& record() const { return record_; }

 private:
  // False: nothing is changed from here on, and the outcome says why.
  bool Change(const ipc::SetHints& request, Queue& queue);
  bool Change(const ipc::SetConfig& request, Queue& queue);
  bool Fail(XResult result, std::string why);
  void SendTo(Agent& agent);
  bool SetsReservation() const;

  Parts parts_;
  const Request request_;
  const uid_t user_;
  const bool is_admin_;
  AuditRecord record_;
  std::vector<sched::QueueId> queues_;  // those that are named and that the tool's user may change
  size_t next_ = 0;
  Outcome outcome_;
  uint32_t too_old_ = 0;  // queues whose agents take no configuration
};

}  // namespace xsched::server
