#include "server/bells.h"

#include <sys/epoll.h>

#include "server/agent.h"
#include "server/event_tag.h"

namespace xsched::server {

bool Bells::Watch(const Agent& agent) {
  return loop_.Watch(agent.doorbell.get(), EPOLLIN | EPOLLET, EventTag(EventSource::kDoorbell, agent.id()));
}

bool Bells::Rings(Agent& agent, TimePoint now) {
  BellState& bell = agent.bell;
  if (now >= bell.since + kWithin) bell = {.since = now};
  if (++bell.rings <= kMostRings) return true;
  muted_.emplace_back(now + kWithin, agent.id());
  static_cast<void>(loop_.Watch(agent.doorbell.get(), 0, EventTag(EventSource::kDoorbell, agent.id())));
  return false;
}

}  // namespace xsched::server
