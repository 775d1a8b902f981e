// Which job a process belongs to. A job is the processes that work together, such as the ranks of a
// distributed program: they wait for each other, so they have their turns at the same time on all devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace xsched::ipc {

struct JobName {
  char text[256] = "";  // "": no job is known
};

// The name of a job that a launcher (torchrun, srun, mpirun, …) has made: it is the same in the environment
// of all ranks. "": this process is no rank, or the only one.
JobName LaunchedJob();

// What messages have for these bytes, which all ranks of a job know: FNV-1a.
inline uint64_t JobNumber(std::span<const char> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash != 0 ? hash : 1;
}
// Likewise for a name. 0: there is no name.
inline uint64_t JobNumber(const char* name) {
  return name == nullptr || *name == '\0' ? 0 : JobNumber(std::span(name, strlen(name)));
}

// How many a process may be in. They are one job then.
inline constexpr size_t kMostJobs = 16;

// Of this process: what XSCHED_JOB says, otherwise what its launcher says. 0: no job is known.
uint64_t JobOfThisProcess();

}  // namespace xsched::ipc
