// The first message of each connection: makes a connection that of an agent or a tool, or refuses it.
#pragma once

#include "base/clock.h"
#include "server/agents.h"
#include "server/connections.h"

namespace xsched::server {

class Handshake {
 public:
  Handshake(Connections& connections, Agents& agents) : connections_(connections), agents_(agents) {}

  // REQUIRES: the connection is unidentified. False: the message is no hello that we can accept; the client
  // may have been told why. The caller closes the connection then.
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);

 private:
  Connections& connections_;
  Agents& agents_;
};

}  // namespace xsched::server
