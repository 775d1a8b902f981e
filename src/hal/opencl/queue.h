// A command queue below an XQueue: gates, markers, and the rest of hal/contract.h.
#pragma once

#include "hal/contract.h"
#include "opencl/functions.h"

#ifdef __cplusplus
extern "C" {
#endif

// OclQueueCreate for the shim, which knows the functions of the runtime instance that made the queue. `next`
// must stay valid.
XSCHED_PRIVATE XResult OclQueueRegister(const xsched::opencl::Functions* next, cl_command_queue queue,
                                        HwQueueHandle* out);

#ifdef __cplusplus
}
#endif
