#include "server/http/scheduler_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server::http {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);

template <typename Message>
void AddIfA(const ipc::Packet& packet, std::vector<Message>& messages) {
  if (packet.header().type == Message::kType) messages.push_back(packet.As<Message>());
}

}  // namespace

class SocketClient::Session {
 public:
  explicit Session(const ipc::SocketPath& path) : until_(MonotonicClock::now() + kPatience) {
    Result<UniqueFd> connection = ipc::ConnectToServer(path);
    if (!connection) throw std::runtime_error(connection.error().text());
    socket_ = std::move(*connection);
    ipc::Hello hello = ipc::HelloFrom(ipc::Role::kTool, "xserver-http");
    hello.pid = getpid();
    Send(hello);
    if (Next().header().type != ipc::MessageType::kWelcome) throw std::runtime_error("the server refused");
  }

  void Send(const auto& message) {
    if (!ipc::Send(socket_.get(), message)) throw std::runtime_error("the server is gone");
  }
  ipc::Packet Next() {
    ipc::Packet packet;
    for (;;) {
      const ipc::Received received = ipc::ReceivePacket(socket_.get(), packet);
      if (received == ipc::Received::kMessage) return packet;
      if (received != ipc::Received::kNothing) throw std::runtime_error("the server is gone");
      const auto left = until_ - MonotonicClock::now();
      pollfd ready{socket_.get(), POLLIN, 0};
      const int left_ms = static_cast<int>(left / std::chrono::milliseconds(1));
      if (left_ms <= 0 || poll(&ready, 1, left_ms) == 0)
        throw std::runtime_error("the server does not answer");
    }
  }

 private:
  TimePoint until_;
  UniqueFd socket_;
};

SocketClient::SocketClient(const std::string& path) {
  if (path.empty() || path.size() >= sizeof path_.text) {
    throw std::runtime_error(
        fmt::format("the socket's path must have 1 to {} characters: {}", sizeof path_.text - 1, path));
  }
  path.copy(path_.text, sizeof path_.text - 1);
}

template <typename Request, typename Take>
void SocketClient::ForEachAnswer(const Request& request, Take&& take) {
  Session session(path_);
  session.Send(request);
  for (;;) {
    const ipc::Packet packet = session.Next();
    if (packet.header().type == ipc::MessageType::kReply) {
      const auto reply = packet.As<ipc::Reply>();
      if (reply.result != kXSchedSuccess)
        throw std::runtime_error(fmt::format("the server says: {}", reply.text));
      return;
    }
    take(packet);
  }
}

std::vector<ipc::QueueInfo> SocketClient::List() {
  std::vector<ipc::QueueInfo> queues;
  ForEachAnswer(ipc::List{}, [&](const ipc::Packet& packet) { AddIfA(packet, queues); });
  return queues;
}

UsageReport SocketClient::Usage(bool with_queues) {
  UsageReport report;
  ipc::GetUsage request{};
  request.queues = with_queues;
  ForEachAnswer(request, [&](const ipc::Packet& packet) {
    AddIfA(packet, report.accounts);
    AddIfA(packet, report.queues);
    AddIfA(packet, report.tenants);
  });
  return report;
}

ipc::Status SocketClient::Status() {
  Session session(path_);
  session.Send(ipc::GetStatus{});
  return session.Next().As<ipc::Status>();
}

template <typename T>
ipc::Reply SocketClient::Answer(const T& request) {
  Session session(path_);
  session.Send(request);
  return session.Next().As<ipc::Reply>();
}

}  // namespace xsched::server::http
