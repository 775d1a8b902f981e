// What the kernel says of a process.
#pragma once

#include <sys/types.h>

#include <optional>

namespace xsched::server {

// Is it stopped (SIGSTOP, a debugger)? Its queues then make no progress and must not make others wait. False
// also if the process cannot be seen.
bool IsStopped(pid_t pid);

// As sched::ProcessFacts::cpu_priority, of the process's first thread. 0 also if it cannot be seen.
int CpuPriorityOf(pid_t pid);

struct ProcessUsage {
  double cpu_seconds;
  double resident_bytes;
};
// Nullopt: it cannot be seen.
std::optional<ProcessUsage> UsageOf(pid_t pid);

}  // namespace xsched::server
