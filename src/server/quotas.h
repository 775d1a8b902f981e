// Counts the server's resources that each user has, and says whether they may have more (limits.h). It never
// closes or refuses anything itself.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "server/limits.h"
#include "server/subordinate_users.h"

namespace xsched::server {

class Quotas {
 public:
  // One connection, counted while this object lives. It is unidentified until its hello.
  class ConnectionShare {
   public:
    ConnectionShare(Quotas& quotas, uid_t user);
    ConnectionShare(ConnectionShare&& other) noexcept
        : quotas_(std::exchange(other.quotas_, nullptr)),
          user_(other.user_),
          identified_(other.identified_) {}
    ~ConnectionShare();
    void Identify();

   private:
    Quotas* quotas_;
    uid_t user_;  // the owner
    bool identified_ = false;
  };

  explicit Quotas(size_t connections_of_user = kMaxConnectionsOfUser, SubordinateUsers subordinates = {})
      : connections_of_user_(connections_of_user), subordinates_(std::move(subordinates)) {}

  // `is_admin`: some connections are kept free for administrators.
  bool MayConnect(uid_t user, bool is_admin = false) const;

  // REQUIRES (for all below): the user has a connection.
  bool MayAddQueue(uid_t user, uint64_t device) const;
  void AddQueue(uid_t user, uint64_t device);
  void RemoveQueue(uid_t user, uint64_t device);
  // A queue of the user was refused. True: it is the first one since the user has connections.
  bool RefuseQueue(uid_t user);

 private:
  struct Usage {
    size_t connections = 0;
    size_t unidentified = 0;  // of these
    size_t queues = 0;
    std::unordered_map<uint64_t, size_t> devices;  // of the queues, and how many are on each
    bool queue_was_refused = false;
  };

  // REQUIRES: the user has a connection.
  const Usage& Of(uid_t user) const { return users_.at(subordinates_.OwnerOf(user)); }
  Usage& Of(uid_t user) { return users_.at(subordinates_.OwnerOf(user)); }

  size_t connections_of_user_;
  SubordinateUsers subordinates_;
  std::unordered_map<uid_t, Usage> users_;  // those who have connections, or whose subordinates have
  size_t connections_ = 0;
  size_t unidentified_ = 0;
  size_t queues_ = 0;
};

}  // namespace xsched::server
