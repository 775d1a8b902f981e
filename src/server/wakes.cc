#include "server/wakes.h"

#include <algorithm>
#include <new>

#include "server/agent.h"

namespace xsched::server {

void Wakes::Add(Agent& agent) noexcept {
  if (agent.wake_due) return;
  try {
    due_.push_back(&agent);
    agent.wake_due = true;
  } catch (const std::bad_alloc&) {
    agent.connection.Send(ipc::Wake{});
  }
}

void Wakes::Forget(Agent& agent) noexcept {
  if (!agent.wake_due) return;
  due_.erase(std::find(due_.begin(), due_.end(), &agent));
  agent.wake_due = false;
}

// Sending a wake may fail. That does no harm: an agent that has unread messages is awake already, and a
// client that has left is noticed soon.
void Wakes::Send(TimePoint now) {
  for (Agent* agent : due_) {
    agent->wake_due = false;
    if (!agent->liveness.is_asked() || agent->connection.HasReadAll()) agent->liveness.Asked(now);
    agent->connection.Send(ipc::Wake{});
  }
  due_.clear();
}

}  // namespace xsched::server
