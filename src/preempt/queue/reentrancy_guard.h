// Marks XSched's own use of a driver: then the shims' wrappers pass calls through. A driver may call
// functions of the program meanwhile. What these call is the program's again.
#pragma once

#include <utility>

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

// A guard for a call of the driver that XSched makes for itself: perhaps with locks held, or on a thread that
// must not wait. The program's code must not run in it.
class OwnDriverCall {
 public:
  OwnDriverCall() { reentrancy_depth += kDepth; }
  ~OwnDriverCall() { reentrancy_depth -= kDepth; }
  OwnDriverCall(const OwnDriverCall&) = delete;
  OwnDriverCall& operator=(const OwnDriverCall&) = delete;

  // True if this thread is inside one.
  static bool Here() { return reentrancy_depth >= kDepth; }

 private:
  static constexpr int kDepth = 1 << 16;
};

// The scope of the program's code that a driver calls inside a call that is guarded.
class ProgramsCode {
 public:
  ProgramsCode() : depth_(std::exchange(reentrancy_depth, 0)) {}
  ~ProgramsCode() { reentrancy_depth = depth_; }
  ProgramsCode(const ProgramsCode&) = delete;
  ProgramsCode& operator=(const ProgramsCode&) = delete;

 private:
  const int depth_;
};

}  // namespace xsched::preempt
