#include "cli/server_session.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "cli/exit_codes.h"

namespace xsched::cli {

ServerSession::ServerSession(Duration patience) : patience_(patience) {
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
  ipc::Hello hello = ipc::HelloFrom(ipc::Role::kTool, "xsched");
  hello.pid = getpid();
  Ask(hello);
  ipc::Packet packet = Next();
  if (packet.header().type == ipc::MessageType::kWelcome) {
    minor_ = packet.As<ipc::Welcome>().minor;
    return;
  }
  const auto rejected = packet.As<ipc::Rejected>();
  throw CommandError(kExitFailed, fmt::format("the server at {} refused: {}", path_, rejected.reason));
}

template <typename T>
void ServerSession::Ask(const T& request) {
  if (!socket_) throw CommandError(kExitNoServer, fmt::format("the server at {} did not answer", path_));
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
        const auto patience = std::chrono::ceil<std::chrono::milliseconds>(patience_);
        if (poll(&ready, 1, static_cast<int>(patience.count())) == 0) {
          // An answer that comes late must not be taken for the next one.
          socket_.Reset();
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
  throw CommandError(reply.result == kXSchedErrorNotAllowed ? kExitNotPermitted : kExitFailed, reply.text);
}

template <typename... T>
std::tuple<std::vector<T>...> ServerSession::TakeAll() {
  std::tuple<std::vector<T>...> all;
  const auto take = []<typename One>(const ipc::Packet& packet, std::vector<One>& to) {
    if (packet.header().type == One::kType) to.push_back(packet.As<One>());
  };
  for (;;) {
    const ipc::Packet packet = Next();
    if (packet.header().type == ipc::MessageType::kReply) {
      Check(packet.As<ipc::Reply>());
      return all;
    }
    (take(packet, std::get<std::vector<T>>(all)), ...);
  }
}

// The server's own words are also for its log, which names the process or the queue itself.
template <typename T>
ipc::Reply ServerSession::Change(const T& request) {
  Ask(request);
  const auto reply = Next().As<ipc::Reply>();
  if (reply.result != kXSchedErrorNotFound) {
    Check(reply);
    return reply;
  }
  throw CommandError(
      kExitFailed,
      request.pid != 0
          ? fmt::format("process {} has no queue that you may change (see xsched list)", request.pid)
          : fmt::format("there is no queue {} of yours (see xsched list)", request.queue_id));
}

std::vector<ipc::QueueInfo> ServerSession::List() {
  Ask(ipc::List{});
  return std::get<0>(TakeAll<ipc::QueueInfo>());
}

ipc::Status ServerSession::Status() {
  Ask(ipc::GetStatus{});
  ipc::Packet packet = Next();
  if (packet.header().type != ipc::MessageType::kStatus)
    throw CommandError(kExitFailed, "the server gave no status");
  return packet.As<ipc::Status>();
}

ServerSession::Used ServerSession::Usage() {
  Ask(ipc::GetUsage{});
  auto [accounts, tenants] = TakeAll<ipc::Usage, ipc::Tenant>();
  return {std::move(accounts), std::move(tenants)};
}

ipc::Reply ServerSession::SetHints(const ipc::SetHints& request) { return Change(request); }

uint32_t ServerSession::SetConfig(const ipc::SetConfig& request) { return Change(request).count; }

void ServerSession::SetPolicy(const ipc::SetPolicy& request) {
  Ask(request);
  Check(Next().As<ipc::Reply>());
}

uint32_t ServerSession::SetActiveWindow(const ipc::SetActiveWindow& request) {
  Ask(request);
  auto reply = Next().As<ipc::Reply>();
  Check(reply);
  return reply.count;
}

void ServerSession::BeginRecording(int32_t pid) {
  ipc::Record request{};
  request.pid = pid;
  Ask(request);
}

void ServerSession::BeginRecordingOfJob(uint64_t job) {
  ipc::Record request{};
  request.job = job;
  Ask(request);
}

void ServerSession::AskForLast(Duration time) {
  ipc::RecordLast request{};
  request.span_ns = static_cast<uint64_t>(time.count());
  Ask(request);
}

Duration ServerSession::GetLast(Duration time, const std::function<void(const ipc::Packet&)>& take) {
  AskForLast(time);
  for (;;) {
    const ipc::Packet packet = Next();
    if (packet.header().type == ipc::MessageType::kReply) {
      const auto reply = packet.As<ipc::Reply>();
      Check(reply);
      return std::chrono::milliseconds(reply.count);
    }
    take(packet);
  }
}

void ServerSession::StopRecording() { ipc::Send(socket_.get(), ipc::StopRecording{}); }

void ServerSession::Require(uint16_t minor, const char* what) const {
  if (minor_ >= minor) return;
  throw CommandError(kExitFailed, fmt::format("the server at {} is too old {}: restart it", path_, what));
}

bool ServerAnswers() { return static_cast<bool>(ipc::ConnectToServer(ipc::FindServerSocket())); }

}  // namespace xsched::cli
