// The user and process at the other end of a connection, as the kernel reports them, and what they may do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xsched::server {

struct Peer {
  pid_t pid = 0;  // 0: in another pid namespace, and so not visible
  uid_t uid = 0;
  std::vector<gid_t> groups;          // the primary one first; it alone if there are more than kMaxGroups
  bool is_admin = false;              // AccessRules::Decide
  bool has_no_user = false;           // likewise: its uid stands for several users
  std::optional<uint64_t> started{};  // StartOf(pid) when it connected; null: nobody has looked
};

// The peer of a connected Unix socket.
std::optional<Peer> PeerOf(int socket);

// True if the process has ended, although others may still use its connection. Its number may be another
// process's then. False also if it cannot be seen. `start_now`: StartOf(peer.pid).
bool HasEnded(const Peer& peer, uint64_t start_now);

// Empty name: none. Throws std::runtime_error if there is no such group.
std::optional<gid_t> FindGroup(const std::string& name);

// True if the process has not the rights that its uid has on this machine: it is in another pid or user
// namespace (a container, where root may take any uid and group), it is root without the capability to
// administrate the machine, or it cannot be seen.
bool IsConfined(pid_t pid, uid_t uid);
// The same, from what /proc says of the process and of the server.
struct ProcessTexts {
  std::string status;
  std::string uid_map;
};
bool IsConfined(const ProcessTexts& process, const ProcessTexts& server, uid_t uid, uid_t server_uid);

class AccessRules {
 public:
  AccessRules(uid_t server_uid, std::optional<gid_t> admin_group,
              bool (*is_confined)(pid_t, uid_t) = IsConfined)
      : server_uid_(server_uid), admin_group_(admin_group), is_confined_(is_confined) {}

  // Decides what the peer may do: once, because it reads what /proc says of the process.
  void Decide(Peer& peer) const;

  // Root, the server's own user, and members of the admin group are administrators, unless they are confined.
  // They see and hint the queues of all users, and set the policy. REQUIRES (for all below): Decide.
  static bool IsAdmin(const Peer& peer) { return peer.is_admin; }
  // Users see and hint their own queues.
  static bool MayTouch(const Peer& peer, uid_t owner) {
    return (peer.uid == owner && !peer.has_no_user) || peer.is_admin;
  }

 private:
  bool HasRights(const Peer& peer) const;

  uid_t server_uid_;
  std::optional<gid_t> admin_group_;
  bool (*is_confined_)(pid_t, uid_t);
};

}  // namespace xsched::server
