// The name of a job (XSCHED_JOB) as the number that messages have.
#pragma once

#include <cstdint>

namespace xsched::ipc {

// FNV-1a. 0: there is no name.
inline uint64_t JobNumber(const char* name) {
  if (name == nullptr || *name == '\0') return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
  return hash != 0 ? hash : 1;
}

}  // namespace xsched::ipc
