// The queues that programs choose for later calls of clCreateCommandQueue (xsched/opencl/cmdq.h).
#pragma once

#include "shim/opencl/call.h"

namespace xsched::opencl {

// The queue that this call returns without making one, with a reference for the program; null: it makes one.
cl_command_queue ChosenQueue(const Call& call);
// The program's call has made `queue`. Keeps it, with a reference, if it is the chosen one.
void KeepChosenQueue(const Functions& next, cl_command_queue queue);

}  // namespace xsched::opencl
