#include "server/tenants/process_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/fd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace xsched::server {
namespace {

constexpr size_t kContainerDigits = 64;
constexpr size_t kMostText = 16384;

bool Is(std::string_view text, auto&& is) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is);
}
bool IsNumber(std::string_view text) {
  return Is(text, [](char c) { return c >= '0' && c <= '9'; });
}
bool IsContainerId(std::string_view text) {
  return text.size() == kContainerDigits &&
         Is(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// What is between the two; nullopt: `text` does not begin and end with them.
std::optional<std::string_view> Between(std::string_view text, std::string_view begin, std::string_view end) {
  if (text.size() < begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end))
    return std::nullopt;
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

// The folder of one container: "ID", or as systemd names it "docker-ID.scope".
std::string ContainerIn(std::string_view folder) {
  if (IsContainerId(folder)) return std::string(folder);
  for (const char* engine : {"docker-", "libpod-", "cri-containerd-", "crio-", "containerd-", "nerdctl-"}) {
    const auto id = Between(folder, engine, ".scope");
    if (id && IsContainerId(*id)) return std::string(*id);
  }
  return "";
}

// "podUID", or as systemd names it "kubepods-burstable-podUID.slice", with _ for -.
std::string PodIn(std::string_view folder) {
  auto uid = Between(folder, "pod", "");
  if (folder.ends_with(".slice") && folder.starts_with("kubepods")) {
    const size_t at = folder.rfind("-pod");
    if (at != std::string_view::npos) uid = Between(folder.substr(at), "-pod", ".slice");
  }
  std::string pod(uid.value_or(""));
  std::replace(pod.begin(), pod.end(), '_', '-');
  return pod;
}

// A reader in a control-group namespace of its own (a server in a container) is shown paths from its own
// group, up to one that contains both:
// "/../../kubepods-burstable.slice/…". What follows is below a group that contains the reader's, so no user
// has made it either.
std::string_view WithoutWayUp(std::string_view path) {
  while (path.starts_with("/..") && (path.size() == 3 || path[3] == '/')) path.remove_prefix(3);
  return path;
}

// The same path from the machine's root, as rules have it, if the way up leads there: as the way to the
// machine's init does, which is in no group that contains the reader's but the root.
std::string FromRoot(std::string_view path, std::string_view of_init) {
  const std::string_view below = WithoutWayUp(path);
  const size_t way_up = path.size() - below.size();
  if (way_up == 0 || way_up != of_init.size() - WithoutWayUp(of_init).size()) return std::string(path);
  return below.empty() ? "/" : std::string(below);
}

// The first folder on such a way down to a pod: below the group of all pods, or of those of one quality of
// service.
bool LeadsToPod(std::string_view top) {
  return top.starts_with("kubepods-") || top.starts_with("pod") || top == "burstable" || top == "besteffort";
}

// Where only root makes control groups, of Kubernetes, Slurm and container engines.
void FindInPath(std::string_view path, ProcessIdentity& identity) {
  const std::vector<std::string_view> folders = Split(WithoutWayUp(path), '/');
  const bool is_below_ours = path.starts_with("/../");
  auto folder = [&](size_t i) { return i < folders.size() ? folders[i] : std::string_view(); };
  const std::string_view top = folder(0);
  if (top == "kubepods" || top == "kubepods.slice" || (is_below_ours && LeadsToPod(top))) {
    for (size_t i = 0; i < folders.size() && identity.container.empty(); ++i) {
      if (identity.pod.empty()) identity.pod = PodIn(folders[i]);
      if (!identity.pod.empty()) identity.container = ContainerIn(folders[i]);
    }
  } else if (top == "system.slice" && folder(1).ends_with("slurmstepd.scope")) {
    const auto job = Between(folder(2), "job_", "");  // version 2
    if (job && IsNumber(*job)) identity.job = *job;
  } else if (top.starts_with("slurm") && folder(1).starts_with("uid_")) {
    const auto job = Between(folder(2), "job_", "");  // version 1
    if (job && IsNumber(*job)) identity.job = *job;
  } else if (top == "docker" || top == "system.slice") {
    identity.container = ContainerIn(folder(1));
  } else if (top == "machine.slice") {
    const bool is_in_pod = folder(1).starts_with("machine-libpod_pod_") && folder(1).ends_with(".slice");
    identity.container = ContainerIn(folder(is_in_pod ? 2 : 1));
  } else if (top == "libpod_parent") {  // Podman without systemd: "libpod-ID", in a pod "PODID/libpod-ID"
    identity.container = ContainerIn(fmt::format("{}.scope", folder(IsContainerId(folder(1)) ? 2 : 1)));
  } else if (is_below_ours) {
    identity.container = ContainerIn(top);
  }
}

UniqueFd PidfdOfPeer(int socket) {
  int fd = -1;
  socklen_t size = sizeof fd;
  return UniqueFd(getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0 ? fd : -1);
}

bool HasEnded(const UniqueFd& pidfd) {
  pollfd end{pidfd.get(), POLLIN, 0};
  return poll(&end, 1, 0) != 0;
}

// Its beginning, if it is longer than kMostText.
std::string Read(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[1024];
  while (file && text.size() < kMostText) {
    const ssize_t count = read(file.get(), piece, sizeof piece);
    if (count <= 0) break;
    text.append(piece, static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

ProcessIdentity IdentityIn(std::string_view cgroup_file, std::string_view of_init) {
  ProcessIdentity identity;
  for (std::string_view line : Split(cgroup_file, '\n')) {
    // "hierarchy:controllers:path"
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    FindInPath(path, identity);
    // Of both versions side by side, the one that is in use: the other one's path is "/".
    const bool is_whole = controllers.empty() || controllers == "name=systemd";
    if (is_whole && path.size() > identity.cgroup.size()) identity.cgroup = path;
  }
  if (!of_init.empty()) identity.cgroup = FromRoot(identity.cgroup, IdentityIn(of_init).cgroup);
  return identity;
}

ProcessIdentity IdentityOf(pid_t pid) {
  static const std::string of_init = Read("/proc/1/cgroup");
  return IdentityIn(Read(fmt::format("/proc/{}/cgroup", pid)), of_init);
}

ProcessIdentity IdentityOfPeer(int socket, pid_t pid) {
  if (pid <= 0) return {};  // in another pid namespace
  const UniqueFd process = PidfdOfPeer(socket);
  const ProcessIdentity identity = IdentityOf(pid);
  // As long as it lives, nothing else has its number. An older kernel has no descriptor for it: then the text
  // is that of the process, unless it has just ended and left a connection behind.
  return process && HasEnded(process) ? ProcessIdentity{} : identity;
}

}  // namespace xsched::server
