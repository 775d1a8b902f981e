/* XSched on OpenCL.
 *
 * Preemption level 1: what is in flight is bounded, and behind that a gate (a user event) holds commands inside the driver,
 * so that a held queue still takes work without blocking its caller.
 *
 * Thread-safe. Needs libhalopencl and libpreempt. Include it with or without OpenCL's own headers.
 */
#ifndef XSCHED_OPENCL_HAL_H_
#define XSCHED_OPENCL_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _cl_command_queue *cl_command_queue;

/* Makes a HwQueue for an OpenCL command queue, in-order or out-of-order. XQueueDestroy and HwQueueDestroy come before the
 * program's last clReleaseCommandQueue; XSched holds no reference on the queue.
 *
 * The driver is the one that the shim saw making the queue; without a shim, the library named by XSCHED_OPENCL_LIB, or the
 * libOpenCL that this process has loaded.
 * Errors: kXSchedErrorInvalidValue: null, or no command queue of that driver; kXSchedErrorNotFound: no OpenCL library is
 * loaded; kXSchedErrorNotAllowed: the queue has a HwQueue (written to *hwq). */
XSCHED_API XResult OclQueueCreate(HwQueueHandle *hwq, cl_command_queue cmdq);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_OPENCL_HAL_H_ */
