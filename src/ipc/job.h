// Which job a process belongs to. A job is the processes that work together, such as the ranks of a
// distributed program: they wait for each other, so they have their turns at the same time on all devices.
#pragma once

#include <cstdint>

namespace xsched::ipc {

struct JobName {
  char text[256] = "";  // "": no job is known
};

// The name of a job that a launcher (torchrun, srun, mpirun, …) has made: it is the same in the environment
// of all ranks. "": this process is no rank, or the only one.
JobName LaunchedJob();

// What messages have for this name: FNV-1a. 0: there is no name.
inline uint64_t JobNumber(const char* name) {
  if (name == nullptr || *name == '\0') return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
  return hash != 0 ? hash : 1;
}

// Of this process: what XSCHED_JOB says, otherwise what its launcher says. 0: no job is known.
uint64_t JobOfThisProcess();

}  // namespace xsched::ipc
