// Marks XSched's own use of a driver: then the shims' wrappers pass calls through.
#pragma once

#include "hal/contract.h"

namespace xsched::preempt {

// How many guards this thread has. Every wrapper reads it. With the initial-exec model, that is one load,
// without a call of the dynamic linker.
XSCHED_PRIVATE extern constinit thread_local int reentrancy_depth __attribute__((tls_model("initial-exec")));

// True while this thread is inside XSched's own use of a driver.
inline bool InsideXSched() { return reentrancy_depth != 0; }

class ReentrancyGuard {
 public:
  ReentrancyGuard() { ++reentrancy_depth; }
  ~ReentrancyGuard() { --reentrancy_depth; }
  ReentrancyGuard(const ReentrancyGuard&) = delete;
  ReentrancyGuard& operator=(const ReentrancyGuard&) = delete;
};

}  // namespace xsched::preempt
