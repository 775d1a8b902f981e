// The user and process at the other end of a connection, as the kernel reports them, and what they may do.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace xsched::server {

struct Peer {
  pid_t pid = 0;  // 0: in another pid namespace
  uid_t uid = 0;
  std::vector<gid_t> groups;  // the primary one first
};

// The peer of a connected Unix socket.
std::optional<Peer> PeerOf(int socket);

// Empty name: none. Throws std::runtime_error if there is no such group.
std::optional<gid_t> FindGroup(const std::string& name);

class AccessRules {
 public:
  AccessRules(uid_t server_uid, std::optional<gid_t> admin_group)
      : server_uid_(server_uid), admin_group_(admin_group) {}

  // Root, the server's own user, and members of the admin group are administrators. They see and hint the
  // queues of all users, and set the policy.
  bool IsAdmin(const Peer& peer) const;
  // Users see and hint their own queues.
  bool MayTouch(const Peer& peer, uid_t owner) const { return peer.uid == owner || IsAdmin(peer); }

 private:
  uid_t server_uid_;
  std::optional<gid_t> admin_group_;
};

}  // namespace xsched::server
