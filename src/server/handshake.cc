#include "server/handshake.h"
#include "server/clean_text.h"

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
  connection.minor = hello.minor;
  std::string complaint;
  if (is_agent) {
    if (!agents_.Add(connection, packet, now)) return false;
    facts_.Learn(*agents_.Find(connection.id));
    complaint = tenants_.Join(*agents_.Find(connection.id));
    agents_.JoinJob(*agents_.Find(connection.id), hello.job);
  }
  connections_.Identify(connection, hello.role, CleanText(hello.name, sizeof hello.name));
  // If it has no account of memory by the welcome, it does not count.
  if (is_agent) {
    Agent& agent = *agents_.Find(connection.id);
    if (!agents_.SendMemory(agent)) agent.memory.reset();
    agent.memory_unsent = false;
  }
  if (!connection.Send(ipc::WelcomeFrom(connection))) return false;
  if (!complaint.empty()) connection.SendReply(kXSchedErrorInvalidValue, 0, complaint);
  return true;
}

}  // namespace xsched::server
