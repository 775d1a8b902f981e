// The agents that are woken at the end of the round, each once. A wake also asks the process for a sign of
// life (liveness.h).
#pragma once

#include <vector>

#include "base/clock.h"

namespace xsched::server {

struct Agent;

class Wakes {
 public:
  // Makes room for `agents` agents, so that Add allocates nothing.
  void Reserve(size_t agents) { due_.reserve(agents); }
  // Wakes the agent at the end of the round; at once where there is no memory.
  void Add(Agent& agent) noexcept;
  // REQUIRES: called before the agent is destroyed.
  void Forget(Agent& agent) noexcept;
  void Send(TimePoint now);

 private:
  std::vector<Agent*> due_;  // those with wake_due
};

}  // namespace xsched::server
