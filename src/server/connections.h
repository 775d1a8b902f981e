// All connections: accepts new ones within limits, and closes those that send no hello in time. It reads and
// writes no messages, and knows nothing of queues.
//
// A connection that is closed stays until RemoveClosed, so that a round may still refer to it.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "server/connection.h"
#include "server/event_loop.h"
#include "server/quotas.h"
#include "server/rejection_log.h"
#include "server/socket_closer.h"
#include "server/work_budget.h"

namespace xsched::server {

class Connections {
 public:
  Connections(EventLoop& loop, Quotas& quotas, WorkBudget& work, TimePoint now)
      : loop_(loop), quotas_(quotas), work_(work), idle_since_(now) {}

  // A new connection, unidentified until Identify. Null: its user has too many, or the system cannot watch
  // more descriptors. If it throws, the socket is closed and nothing else has changed.
  Connection* Add(UniqueFd socket, Peer peer, TimePoint now);
  // Closes a socket that does not become a connection. Like each socket of a client, it may have descriptors
  // in it that take long to close (socket_closer.h).
  void Discard(UniqueFd socket) noexcept { closer_.Close(std::move(socket)); }
  void Identify(Connection& connection, ipc::Role role, std::string name);
  // Null: there is none.
  Connection* Find(uint64_t id);

  // Reports `events` of the socket from now on. False: the system cannot watch more descriptors.
  [[nodiscard]] bool Watch(const Connection& connection, uint32_t events);
  // `reason`: what the client did wrong; null: it left.
  void Close(Connection& connection, const char* reason);
  // Closes those that sent no hello in time. Returns when to call it again.
  TimePoint CloseUnidentified(TimePoint now);
  // Destroys the closed ones, after calling forget(connection) for each.
  template <typename Forget>
  void RemoveClosed(TimePoint now, Forget&& forget);
  bool removal_due() const { return removal_due_; }

  bool empty() const { return connections_.empty(); }
  // REQUIRES: empty().
  TimePoint idle_since() const { return idle_since_; }
  uint64_t rejected() const { return rejections_.count(); }

 private:
  using Map = std::unordered_map<uint64_t, std::unique_ptr<Connection>>;
  Map::iterator Remove(Map::iterator connection);

  EventLoop& loop_;
  Quotas& quotas_;
  WorkBudget& work_;
  SocketCloser closer_;
  RejectionLog rejections_;
  Map connections_;  // by id
  uint64_t next_id_ = 1;
  std::deque<uint64_t> newcomers_;  // ids, the oldest first; those that are identified or gone are skipped
  bool removal_due_ = false;
  TimePoint idle_since_;
};

template <typename Forget>
void Connections::RemoveClosed(TimePoint now, Forget&& forget) {
  if (!removal_due_) return;
  removal_due_ = false;
  for (auto next = connections_.begin(); next != connections_.end();) {
    if (!next->second->closed) {
      ++next;
      continue;
    }
    forget(*next->second);
    next = Remove(next);
  }
  if (connections_.empty()) idle_since_ = now;
}

}  // namespace xsched::server
