// Handles the first message of each connection: the connection becomes that of an agent or a tool, or is
// refused.
#pragma once

#include "base/clock.h"
#include "server/agents.h"
#include "server/connections.h"
#include "server/process_facts.h"
#include "server/tenants/tenant_table.h"

namespace xsched::server {

class Handshake {
 public:
  Handshake(Connections& connections, Agents& agents, const ProcessFactsTable& facts, TenantTable& tenants)
      : connections_(connections), agents_(agents), facts_(facts), tenants_(tenants) {}

  // REQUIRES: the connection is unidentified. False: the message is not a valid hello. The client may have
  // been sent the reason, and the caller closes the connection.
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);

 private:
  Connections& connections_;
  Agents& agents_;
  const ProcessFactsTable& facts_;
  TenantTable& tenants_;
};

}  // namespace xsched::server
