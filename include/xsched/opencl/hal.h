/* OpenCL command queues as hardware queues, with preemption level 1.
 *
 * With XSched's shim (xsched run, OPENCL_LAYERS or LD_PRELOAD) everything that a program enqueues on such a queue is scheduled;
 * without it, only what the program passes to XQueueSubmit. Usable with and without the OpenCL headers. Thread-safe. Needs
 * libhalopencl and libpreempt.
 */
#ifndef XSCHED_OPENCL_HAL_H_
#define XSCHED_OPENCL_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in CL/cl.h. */
typedef struct _cl_command_queue *cl_command_queue;

/* Creates a HwQueue over `queue`, or returns the one that it has (made by OclQueueCreate, or by the shim). The queue must live
 * until HwQueueDestroy (with a shim it may be released before).
 * XSCHED_OPENCL_LIB is the path of the OpenCL library, if it is not the one that is loaded as libOpenCL.so.1.
 * Errors: kXSchedErrorInvalidValue: null, or not an OpenCL host queue; kXSchedErrorNotFound: no OpenCL library;
 * kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult OclQueueCreate(HwQueueHandle *hwq, cl_command_queue queue);

/* Returns the HwQueue of `queue`. kXSchedErrorInvalidValue: `hwq` is null; kXSchedErrorNotFound: it has none. */
XSCHED_API XResult OclQueueGet(HwQueueHandle *hwq, cl_command_queue queue);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_OPENCL_HAL_H_ */
