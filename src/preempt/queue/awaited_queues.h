// The queues of the process that a call of the driver waits for.
#pragma once

#include <cstdint>

#include "xsched/types.h"

namespace xsched::preempt {

// Those of one context, and of one device. 0: of any.
struct AwaitedQueues {
  uint64_t context = 0;
  XDevice device = 0;
};

}  // namespace xsched::preempt
