// Accepts connections from the listening socket, a bounded number per round. If descriptors have run out and
// it cannot even reject clients, they wait for a while.
#pragma once

#include "base/clock.h"
#include "server/access.h"
#include "server/connections.h"
#include "server/event_loop.h"
#include "server/listener.h"

namespace xsched::server {

class Acceptor {
 public:
  // Throws std::runtime_error.
  Acceptor(Listener& listener, EventLoop& loop, Connections& connections, const AccessRules& access);

  // Clients are waiting at the socket (EventSource::kListener).
  void Accept(TimePoint now);
  // Listens again after a pause. Returns when to call it again.
  TimePoint Resume(TimePoint now);

 private:
  Listener& listener_;
  EventLoop& loop_;
  Connections& connections_;
  const AccessRules& access_;
  TimePoint resume_at_ = kNever;
};

}  // namespace xsched::server
