// Collects what the scheduler should know of a process and the process does not report itself
// (sched::ProcessFacts): its priority for the CPU's scheduler, and whether it has the active window of a
// display.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/agents.h"
#include "server/process_state.h"
#include "server/queues.h"
#include "server/subordinate_users.h"

namespace xsched::server {

class ProcessFactsTable {
 public:
  // How often CPU priorities are read while a policy uses them.
  static constexpr Duration kReadEvery = std::chrono::seconds(1);

  ProcessFactsTable(Agents& agents, Queues& queues, const sched::Scheduler& scheduler,
                    const SubordinateUsers& subordinates, int (*read_cpu_priority)(pid_t) = CpuPriorityOf)
      : agents_(agents),
        queues_(queues),
        scheduler_(scheduler),
        subordinates_(subordinates),
        read_cpu_priority_(read_cpu_priority) {}

  // An agent has come. REQUIRES: it has no queue.
  void Learn(Agent& agent) const;
  // Of this user's display, the active window is one of the process `pid`, and of no other. 0: of none.
  // Returns how many queues the process has. Negative: the user has kMaxDisplaysOfUser displays already.
  int SetActiveWindow(uid_t user, uint32_t display, pid_t pid);
  // Reads CPU priorities if it is time to: of kMaxCheckedPerRound agents at a time, because the kernel takes
  // long for thousands of them. Returns when to call it again.
  TimePoint Refresh(TimePoint now);

 private:
  bool HasAllItsDisplays(uid_t user) const;
  sched::ProcessFacts FactsOf(const Agent& agent) const;
  bool HasActiveWindow(const Peer& process) const;

  Agents& agents_;
  Queues& queues_;
  const sched::Scheduler& scheduler_;
  const SubordinateUsers& subordinates_;
  int (*read_cpu_priority_)(pid_t);
  std::map<std::pair<uid_t, uint32_t>, pid_t> active_;  // by user and display
  std::vector<uint64_t> unread_;  // agents whose processes are still to be read, in the next rounds
  TimePoint read_at_{};
};

}  // namespace xsched::server
