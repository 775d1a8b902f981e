#include "server/access.h"

#include <errno.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>

namespace xsched::server {

std::optional<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer{credentials.pid, credentials.uid, {credentials.gid}};
  std::vector<gid_t> groups(64);
  for (;;) {
    size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
      peer.groups.insert(peer.groups.end(), groups.begin(), groups.begin() + size / sizeof(gid_t));
      return peer;
    }
    // ERANGE: `size` says how much is needed. Any other error: an old kernel, and the primary group must be
    // enough.
    if (errno != ERANGE) return peer;
    groups.resize(size / sizeof(gid_t));
  }
}

std::optional<gid_t> FindGroup(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const group* found = getgrnam(name.c_str());
  if (found == nullptr) throw std::runtime_error(fmt::format("there is no group {}", name));
  return found->gr_gid;
}

bool AccessRules::IsAdmin(const Peer& peer) const {
  if (peer.uid == 0 || peer.uid == server_uid_) return true;
  return admin_group_ &&
         std::find(peer.groups.begin(), peer.groups.end(), *admin_group_) != peer.groups.end();
}

}  // namespace xsched::server
