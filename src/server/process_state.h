// Is a process stopped (SIGSTOP, a debugger)? Its queues then make no progress and must not make others wait.
#pragma once

#include <sys/types.h>

namespace xsched::server {

// False also when the process cannot be seen.
bool IsStopped(pid_t pid);

}  // namespace xsched::server
