// Marks XSched's own use of a driver: then the shims' wrappers pass calls through.
#pragma once

#include "hal/contract.h"

namespace xsched::preempt {

// True while this thread is inside XSched's own use of a driver.
XSCHED_PRIVATE bool InsideXSched();

class ReentrancyGuard {
 public:
  ReentrancyGuard() { Enter(); }
  ~ReentrancyGuard() { Leave(); }
  ReentrancyGuard(const ReentrancyGuard&) = delete;
  ReentrancyGuard& operator=(const ReentrancyGuard&) = delete;

 private:
  XSCHED_PRIVATE static void Enter();
  XSCHED_PRIVATE static void Leave();
};

}  // namespace xsched::preempt
