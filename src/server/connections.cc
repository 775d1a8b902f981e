#include "server/connections.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "server/event_tag.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

// Work: closing may take SocketCloser::kLongest.
constexpr uint64_t kClosedAs = 16;

}  // namespace

Connection* Connections::Add(UniqueFd socket, Peer peer, TimePoint now) {
  if (!quotas_.MayConnect(peer.uid, peer.is_admin)) {
    rejections_.Add(peer, "too many connections", now);
    Discard(std::move(socket));
    return nullptr;
  }
  // A smaller buffer than the system's default. If that fails, there is the default.
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kMaxUnreadBytes, sizeof kMaxUnreadBytes);
  Quotas::ConnectionShare share(quotas_, peer.uid);
  auto connection = std::make_unique<Connection>(
      Connection{std::move(socket), std::move(peer), std::move(share), next_id_++, now});
  if (!Watch(*connection, EPOLLIN)) {
    rejections_.Add(connection->peer, "the system watches no more descriptors", now);
    Discard(std::move(connection->socket));
    return nullptr;
  }
  newcomers_.push_back(connection->id);
  const uint64_t id = connection->id;
  return connections_.emplace(id, std::move(connection)).first->second.get();
}

void Connections::Identify(Connection& connection, ipc::Role role, std::string name) {
  connection.role = role;
  connection.name = std::move(name);
  connection.share.Identify();
}

Connection* Connections::Find(uint64_t id) {
  auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

bool Connections::Watch(const Connection& connection, uint32_t events) {
  return loop_.Watch(connection.socket.get(), events, EventTag(EventSource::kSocket, connection.id));
}

void Connections::Close(Connection& connection, const char* reason) {
  if (connection.closed) return;
  connection.closed = true;
  removal_due_ = true;
  if (reason != nullptr) rejections_.Add(connection.peer, reason, MonotonicClock::now());
}

TimePoint Connections::CloseUnidentified(TimePoint now) {
  for (; !newcomers_.empty(); newcomers_.pop_front()) {
    Connection* connection = Find(newcomers_.front());
    if (connection == nullptr || connection->role || connection->closed) continue;
    TimePoint deadline = connection->since + kHelloTimeout;
    if (now < deadline) return deadline;
    Close(*connection, "no hello");
  }
  return kNever;
}

Connections::Map::iterator Connections::Remove(Map::iterator connection) {
  loop_.Unwatch(connection->second->socket.get());
  work_.Charge(connection->second->peer.uid, kClosedAs);
  closer_.Close(std::move(connection->second->socket));
  return connections_.erase(connection);
}

}  // namespace xsched::server
