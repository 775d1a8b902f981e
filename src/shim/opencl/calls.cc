#include "shim/opencl/calls.h"

namespace xsched::opencl {

void NoteDependencies(preempt::XQueue* waiter, cl_command_queue queue, cl_uint count, const cl_event* events) {
  const OclDriver* driver = DriverOfQueue(queue);
  if (driver == nullptr) return;
  preempt::ReentrancyGuard guard;
  for (cl_uint i = 0; i < count; ++i) {
    cl_int status = CL_COMPLETE;
    cl_command_queue owner = nullptr;  // null for user events
    bool known = driver->clGetEventInfo(events[i], CL_EVENT_COMMAND_QUEUE, sizeof owner, &owner, nullptr) == CL_SUCCESS &&
                 driver->clGetEventInfo(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) ==
                     CL_SUCCESS;
    if (!known || status <= CL_COMPLETE) continue;
    if (preempt::XQueue* xqueue = XQueueOf(owner)) preempt::AddDependency(waiter, xqueue);
  }
}

}  // namespace xsched::opencl
