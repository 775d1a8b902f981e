// What the kernel says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace xsched::server {

// Is it stopped (SIGSTOP, a debugger)? Its queues then make no progress and must not make others wait. False
// also if the process cannot be seen.
bool IsStopped(pid_t pid);

// As sched::ProcessFacts::cpu_priority, of the process's first thread. 0 also if it cannot be seen.
int CpuPriorityOf(pid_t pid);

// The lowest of them: that of nice 19.
inline constexpr int kLowestCpuPriority = -19;

// When it began, in ticks of the kernel's clock. With its number, this tells it from all other processes. 0
// also if it cannot be seen.
inline constexpr uint64_t kNoProcess = ~uint64_t{0};  // there is none with this number
uint64_t StartOf(pid_t pid);

struct ProcessUsage {
  double cpu_seconds;
  double resident_bytes;
};
// Nullopt: it cannot be seen.
std::optional<ProcessUsage> UsageOf(pid_t pid);

}  // namespace xsched::server
