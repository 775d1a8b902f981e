// What a process belongs to: its control group, container, Slurm job and Kubernetes pod. The kernel says it
// (/proc/PID/cgroup), and never the process itself.
//
// Users may make control groups of any name below their own ones (user.slice). So a container, a job or a pod
// is known only by a group whose place no ordinary user can write to.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace xsched::server {

// So many digits of a container's id do engines show.
inline constexpr size_t kShownContainerDigits = 12;

struct ProcessIdentity {
  std::string cgroup;     // "/system.slice/a.service"; empty: not known
  std::string container;  // its id, of 64 digits; empty: in none, as far as is known
  std::string job;        // the number of the Slurm job; likewise
  std::string pod;        // the uid of the Kubernetes pod, as kubectl shows it; likewise

  bool operator==(const ProcessIdentity&) const = default;
};

// From a text in the format of /proc/PID/cgroup, of either version of control groups. `of_init`: that of the
// machine's init. A reader in a namespace of its own needs it to know where the root is.
ProcessIdentity IdentityIn(std::string_view cgroup_file, std::string_view of_init = {});

// Of the process that has this number now; nothing is known of one that there is not.
ProcessIdentity IdentityOf(pid_t pid);

// Of the process at the other end of a connected Unix socket, of which the kernel has said that it is `pid`.
// A process that ended in the meantime belongs to nothing: `pid` may be another one now.
ProcessIdentity IdentityOfPeer(int socket, pid_t pid);

}  // namespace xsched::server
