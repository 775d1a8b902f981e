#include "server/http/caller.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace xsched::server::http {
namespace {

constexpr const char* kEstablished = "01";

// As the tables print an address: its bytes as they are in memory, as one number; the port in host order.
std::string InTable(const sockaddr_in& end) {
  return fmt::format("{:08X}:{:04X}", end.sin_addr.s_addr, ntohs(end.sin_port));
}
// A socket of IPv6 may be connected over IPv4.
std::string InTable6(const sockaddr_in& end) { return fmt::format("{:016X}FFFF0000{}", 0, InTable(end)); }

}  // namespace

std::optional<uid_t> UserInTable(std::istream& table, const sockaddr_in& client, const sockaddr_in& server) {
  std::string line;
  std::getline(table, line);  // the headings
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retries;
    uid_t user = 0;
    uint64_t timeout = 0;
    uint64_t inode = 0;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >>
          inode))
      continue;
    const bool is_it = (local == InTable(client) && remote == InTable(server)) ||
                       (local == InTable6(client) && remote == InTable6(server));
    if (is_it) return state == kEstablished && inode != 0 ? std::optional(user) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<uid_t> UserOfConnection(const sockaddr_in& client, const sockaddr_in& server) {
  // Not /proc/net: the shipped units see of /proc only processes.
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream table(path);
    if (auto user = UserInTable(table, client, server)) return user;
  }
  return std::nullopt;
}

std::optional<Peer> PeerAt(int connection) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t our_size = sizeof ours;
  socklen_t their_size = sizeof theirs;
  if (getsockname(connection, reinterpret_cast<sockaddr*>(&ours), &our_size) != 0) return std::nullopt;
  if (ours.ss_family == AF_UNIX) return PeerOf(connection);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&theirs), &their_size) != 0 ||
      ours.ss_family != AF_INET || theirs.ss_family != AF_INET)
    return std::nullopt;
  const auto user = UserOfConnection(reinterpret_cast<const sockaddr_in&>(theirs),
                                     reinterpret_cast<const sockaddr_in&>(ours));
  if (!user) return std::nullopt;
  return PeerFor(*user);
}

Peer PeerFor(uid_t user) {
  Peer peer{0, user, {}};
  const passwd* entry = getpwuid(user);
  if (entry == nullptr) return peer;
  int count = 64;
  peer.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(entry->pw_name, entry->pw_gid, peer.groups.data(), &count) < 0) {
    peer.groups.resize(static_cast<size_t>(count));
    getgrouplist(entry->pw_name, entry->pw_gid, peer.groups.data(), &count);
  }
  peer.groups.resize(static_cast<size_t>(count));
  return peer;
}

bool MayConnect(const Peer& peer, const struct stat& socket) {
  if (peer.uid == 0) return true;
  if (peer.uid == socket.st_uid) return (socket.st_mode & S_IWUSR) != 0;
  const bool is_in_group =
      std::find(peer.groups.begin(), peer.groups.end(), socket.st_gid) != peer.groups.end();
  return (socket.st_mode & (is_in_group ? S_IWGRP : S_IWOTH)) != 0;
}

}  // namespace xsched::server::http
