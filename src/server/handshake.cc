#include "server/handshake.h"

#include <fmt/format.h>

namespace xsched::server {

bool Handshake::HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now) {
  if (packet.header().type != ipc::MessageType::kHello) return false;
  auto hello = packet.As<ipc::Hello>();
  if (hello.major != ipc::kMajor) {
    connection.SendRejected(
        fmt::format("this server speaks protocol {}.{}, the client {}.{}: update the older one", ipc::kMajor,
                    ipc::kMinor, hello.major, hello.minor));
    return false;
  }
  const bool is_agent = hello.role == ipc::Role::kAgent;
  if (!is_agent && hello.role != ipc::Role::kTool) return false;
  if (packet.fd_count != (is_agent ? 2 : 0)) return false;
  if (is_agent) {
    if (!agents_.Add(connection, packet, now)) return false;
    facts_.Learn(*agents_.Find(connection.id));
    tenants_.Join(*agents_.Find(connection.id));
    agents_.JoinJob(*agents_.Find(connection.id), hello.job);
  }
  connection.minor = hello.minor;
  connections_.Identify(connection, hello.role, CleanText(hello.name, sizeof hello.name));
  return connection.Send(ipc::WelcomeFrom(connection));
}

}  // namespace xsched::server
