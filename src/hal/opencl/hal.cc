#include "xsched/opencl/hal.h"

#include "hal/opencl/queue.h"
#include "hal/opencl/runtime.h"
#include "preempt/api/launch.h"

XResult OclQueueCreate(HwQueueHandle* hwq, cl_command_queue queue) {
  if (hwq == nullptr || queue == nullptr) return kXSchedErrorInvalidValue;
  xsched::preempt::ReentrancyGuard guard;
  const xsched::opencl::Functions* next = xsched::opencl::FindRuntime();
  return next == nullptr ? kXSchedErrorNotFound : OclQueueRegister(next, queue, hwq);
}
