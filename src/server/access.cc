#include "server/access.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/user_ids.h"
#include "server/limits.h"
#include "server/process_state.h"

namespace xsched::server {

std::optional<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer{credentials.pid, credentials.uid, {credentials.gid}};
  if (peer.pid != 0) peer.started = StartOf(peer.pid);
  std::array<gid_t, kMaxGroups> groups;
  size = sizeof groups;
  // If it fails, there are more groups, or the kernel is old. The kernel takes 5 ms for 65,536 groups.
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0)
    peer.groups.insert(peer.groups.end(), groups.begin(), groups.begin() + size / sizeof(gid_t));
  return peer;
}

bool HasEnded(const Peer& peer, uint64_t start_now) {
  if (!peer.started) return false;
  const bool both_seen = *peer.started != 0 && start_now != 0;
  return start_now == kNoProcess || (both_seen && start_now != *peer.started);
}

namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What stands behind "name:\t" in /proc/PID/status; "": nothing.
std::string StatusField(const std::string& status, const std::string& name) {
  const std::string heading = "\n" + name + ":\t";
  const size_t at = status.find(heading);
  if (at == std::string::npos) return "";
  const size_t begin = at + heading.size();
  return status.substr(begin, status.find('\n', begin) - begin);
}

bool MayAdministrate(const std::string& status) {
  constexpr int kAdministrate = 21;  // CAP_SYS_ADMIN
  const std::string capabilities = StatusField(status, "CapEff");
  return (strtoull(capabilities.c_str(), nullptr, 16) >> kAdministrate & 1) != 0;
}

ProcessTexts TextsOf(const std::string& folder) {
  return {ReadText(folder + "status"), ReadText(folder + "uid_map")};
}

}  // namespace

bool IsConfined(const ProcessTexts& process, const ProcessTexts& server, uid_t uid, uid_t server_uid) {
  // In a pid namespace below ours, the process has one number more.
  if (StatusField(process.status, "NSpid").find('\t') != std::string::npos) return true;
  if (process.status.empty() || process.uid_map != server.uid_map) return true;
  // Where the server itself is root without the capability, root can do no more than the server.
  const bool is_servers_own = server_uid == 0 && !MayAdministrate(server.status);
  return uid == 0 && !is_servers_own && !MayAdministrate(process.status);
}

bool IsConfined(pid_t pid, uid_t uid) {
  if (pid <= 0) return true;
  static const ProcessTexts server = TextsOf("/proc/self/");
  return IsConfined(TextsOf(fmt::format("/proc/{}/", pid)), server, uid, geteuid());
}

std::optional<gid_t> FindGroup(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const group* found = getgrnam(name.c_str());
  if (found == nullptr) throw std::runtime_error(fmt::format("there is no group {}", name));
  return found->gr_gid;
}

void AccessRules::Decide(Peer& peer) const {
  peer.has_no_user = StandsForSeveral(peer.uid);
  peer.is_admin = !peer.has_no_user && HasRights(peer) && !is_confined_(peer.pid, peer.uid);
}

bool AccessRules::HasRights(const Peer& peer) const {
  if (peer.uid == 0 || peer.uid == server_uid_) return true;
  return admin_group_ &&
         std::find(peer.groups.begin(), peer.groups.end(), *admin_group_) != peer.groups.end();
}

}  // namespace xsched::server
