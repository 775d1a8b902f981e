#include "cli/server_session.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit_codes.h"

namespace xsched::cli {

ServerSession::ServerSession() {
  ipc::SocketPath path = ipc::FindServerSocket();
  path_ = path.text;
  Result<UniqueFd> connection = ipc::ConnectToServer(path);
  if (!connection) {
    if (connection.error().errnum() == EACCES) {
      throw CommandError(
          kExitNotPermitted,
          fmt::format("permission denied by the server at {}: check the mode and group of its socket",
                      path_));
    }
    throw CommandError(kExitNoServer, fmt::format("{} (start one with xserver, or a program with xsched run)",
                                                  connection.error().text()));
  }
  socket_ = std::move(*connection);
  ipc::Hello hello{};
  hello.major = ipc::kMajor;
  hello.minor = ipc::kMinor;
  hello.role = ipc::Role::kTool;
  hello.pid = getpid();
  strcpy(hello.name, "xsched");
  Ask(hello);
  ipc::Packet packet = Next();
  if (packet.header().type == ipc::MessageType::kWelcome) return;
  auto rejected = packet.As<ipc::Rejected>();
  rejected.reason[sizeof rejected.reason - 1] = '\0';
  throw CommandError(kExitFailed, fmt::format("the server at {} refused: {}", path_, rejected.reason));
}

template <typename T>
void ServerSession::Ask(const T& request) {
  if (!ipc::Send(socket_.get(), request)) {
    throw CommandError(kExitNoServer, fmt::format("the server at {} is gone", path_));
  }
}

ipc::Packet ServerSession::Next() {
  ipc::Packet packet;
  for (;;) {
    switch (ipc::ReceivePacket(socket_.get(), packet)) {
      case ipc::Received::kMessage:
        return packet;
      case ipc::Received::kNothing: {
        pollfd ready{socket_.get(), POLLIN, 0};
        if (poll(&ready, 1, 5000) == 0) {
          throw CommandError(kExitFailed, fmt::format("the server at {} does not answer", path_));
        }
        continue;
      }
      default:
        throw CommandError(kExitNoServer, fmt::format("the server at {} closed the connection", path_));
    }
  }
}

void ServerSession::Check(const ipc::Reply& reply) {
  if (reply.result == kXSchedSuccess) return;
  std::string text(reply.text, strnlen(reply.text, sizeof reply.text));
  throw CommandError(reply.result == kXSchedErrorNotAllowed ? kExitNotPermitted : kExitFailed, text);
}

std::vector<ipc::QueueInfo> ServerSession::List() {
  Ask(ipc::List{});
  std::vector<ipc::QueueInfo> queues;
  for (;;) {
    ipc::Packet packet = Next();
    if (packet.header().type == ipc::MessageType::kReply) {
      Check(packet.As<ipc::Reply>());
      return queues;
    }
    if (packet.header().type != ipc::MessageType::kQueueInfo) continue;
    auto info = packet.As<ipc::QueueInfo>();
    info.name[sizeof info.name - 1] = '\0';
    info.device_name[sizeof info.device_name - 1] = '\0';
    info.waits_for_name[sizeof info.waits_for_name - 1] = '\0';
    queues.push_back(info);
  }
}

ipc::Status ServerSession::Status() {
  Ask(ipc::GetStatus{});
  ipc::Packet packet = Next();
  if (packet.header().type != ipc::MessageType::kStatus)
    throw CommandError(kExitFailed, "the server gave no status");
  auto status = packet.As<ipc::Status>();
  status.version[sizeof status.version - 1] = '\0';
  return status;
}

uint32_t ServerSession::SetHints(const ipc::SetHints& request) {
  Ask(request);
  auto reply = Next().As<ipc::Reply>();
  Check(reply);
  return reply.count;
}

void ServerSession::SetPolicy(const ipc::SetPolicy& request) {
  Ask(request);
  Check(Next().As<ipc::Reply>());
}

bool ServerAnswers() { return static_cast<bool>(ipc::ConnectToServer(ipc::FindServerSocket())); }

}  // namespace xsched::cli
