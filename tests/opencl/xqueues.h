// The XQueues that the shim has made for a program's command queues.
#pragma once

#include <gtest/gtest.h>

#include "xsched/opencl/hal.h"
#include "xsched/xsched.h"

namespace xsched::testing {

// 0: it is not scheduled.
inline XQueueHandle XQueueOf(cl_command_queue queue) {
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  return OclQueueGet(&hwq, queue) == kXSchedSuccess && XQueueGet(&xqueue, hwq) == kXSchedSuccess ? xqueue : 0;
}

inline bool IsScheduled(cl_command_queue queue) { return XQueueOf(queue) != 0; }

inline XQueueState StateOf(cl_command_queue queue) {
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(XQueueOf(queue), &state), kXSchedSuccess);
  return state;
}

inline int64_t Launched(cl_command_queue queue) {
  int64_t count = -1;
  EXPECT_EQ(XQueueProfileHwCommandCount(XQueueOf(queue), &count), kXSchedSuccess);
  return count;
}

}  // namespace xsched::testing
