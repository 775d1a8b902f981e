#include "xsched/opencl/hal.h"

#include "base/driver_library.h"
#include "hal/opencl/queue.h"
#include "hal/opencl/runtime.h"
#include "preempt/api/launch.h"

XResult OclQueueCreate(HwQueueHandle* hwq, cl_command_queue queue) {
  if (hwq == nullptr || queue == nullptr) return kXSchedErrorInvalidValue;
  xsched::preempt::ReentrancyGuard guard;
  xsched::WarnIfNotIntercepted("opencl");
  const xsched::opencl::Functions* next = xsched::opencl::FindRuntime();
  if (next == nullptr) return kXSchedErrorNotFound;
  return HwQueueMadeOrFound(OclQueueRegister(next, queue, hwq));
}

XResult OclQueueGet(HwQueueHandle* hwq, cl_command_queue queue) {
  if (hwq == nullptr) return kXSchedErrorInvalidValue;
  const HwQueueHandle found = HwQueueFind(kPlatformOpenCL, reinterpret_cast<uint64_t>(queue));
  if (found == 0) return kXSchedErrorNotFound;
  *hwq = found;
  return kXSchedSuccess;
}
