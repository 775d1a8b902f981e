#include "server/process_facts.h"

#include <algorithm>

#include "server/limits.h"

namespace xsched::server {

void ProcessFactsTable::Learn(Agent& agent) const { agent.facts = FactsOf(agent); }

sched::ProcessFacts ProcessFactsTable::FactsOf(const Agent& agent) const {
  const Peer& process = agent.connection.peer;
  const int cpu_priority = read_cpu_priority_(process.pid);
  // Looked at afterwards: the priority is that of the process only if it has not ended by then. Who uses its
  // connection now has a priority that nobody knows, and must not gain by that.
  return {.cpu_priority = HasEnded(process, StartOf(process.pid)) ? kLowestCpuPriority : cpu_priority,
          .window_active = HasActiveWindow(process)};
}

// A user's displays say nothing of the processes of others.
bool ProcessFactsTable::HasActiveWindow(const Peer& process) const {
  return process.pid != 0 && std::any_of(active_.begin(), active_.end(), [&](const auto& entry) {
           return entry.first.first == process.uid && entry.second == process.pid;
         });
}

bool ProcessFactsTable::HasAllItsDisplays(uid_t user) const {
  const uid_t owner = subordinates_.OwnerOf(user);
  return std::count_if(active_.begin(), active_.end(), [&](const auto& entry) {
           return subordinates_.OwnerOf(entry.first.first) == owner;
         }) >= kMaxDisplaysOfUser;
}

int ProcessFactsTable::SetActiveWindow(uid_t user, uint32_t display, pid_t pid) {
  const std::pair key(user, display);
  if (pid == 0) {
    active_.erase(key);
  } else {
    if (!active_.contains(key) && HasAllItsDisplays(user)) return -1;
    active_[key] = pid;
  }
  size_t count = 0;
  agents_.ForEach([&](Agent& agent) {
    if (agent.connection.peer.uid != user) return;
    sched::ProcessFacts facts = agent.facts;
    facts.window_active = HasActiveWindow(agent.connection.peer);
    queues_.SetFacts(agent, facts);
    if (agent.connection.peer.pid == pid) count += agent.queues.size();
  });
  return static_cast<int>(count);
}

TimePoint ProcessFactsTable::Refresh(TimePoint now) {
  if (!scheduler_.setting().Reads(&sched::HintsRead::cpu_priority)) return kNever;
  if (unread_.empty() && now < read_at_) return read_at_;
  if (unread_.empty()) {
    read_at_ = now + kReadEvery;
    agents_.ForEach([&](const Agent& agent) { unread_.push_back(agent.id()); });
  }
  for (size_t read = 0; read < kMaxCheckedPerRound && !unread_.empty(); ++read) {
    Agent* agent = agents_.Find(unread_.back());
    unread_.pop_back();
    if (agent != nullptr) queues_.SetFacts(*agent, FactsOf(*agent));
  }
  return unread_.empty() ? read_at_ : now;
}

}  // namespace xsched::server
