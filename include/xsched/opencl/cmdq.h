/* One command queue where a program makes several, as in XSched 1.2: for programs whose framework makes a queue for each model or
 * session, and which want these to be one queue to the scheduler.
 *
 * Between SetOverrideCommandQueue(i) and UnsetOverrideCommandQueue, each call of clCreateCommandQueue (and ...WithProperties), in
 * whatever thread, returns queue i. The first such call makes it, so its context, device and properties are that call's. The
 * program releases what it gets as usual. XSched keeps a reference until DeleteOverrideCommandQueue.
 *
 * Thread-safe. Needs libshimopencl as a layer or preloaded (xsched run).
 */
#ifndef XSCHED_OPENCL_CMDQ_H_
#define XSCHED_OPENCL_CMDQ_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in CL/cl.h. */
typedef struct _cl_command_queue *cl_command_queue;

/* kXSchedErrorInvalidValue: `queue_idx` is negative. */
XSCHED_API XResult SetOverrideCommandQueue(int32_t queue_idx);
XSCHED_API XResult UnsetOverrideCommandQueue(void);

/* Queue `queue_idx`, without a reference for the program. kXSchedErrorNotFound: it was not made yet, or was deleted;
 * kXSchedErrorInvalidValue: `cmdq` is null or `queue_idx` negative. */
XSCHED_API XResult GetOverrideCommandQueue(int32_t queue_idx, cl_command_queue *cmdq);

/* Releases XSched's reference on queue `queue_idx`. kXSchedErrorNotFound: there is none. */
XSCHED_API XResult DeleteOverrideCommandQueue(int32_t queue_idx);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_OPENCL_CMDQ_H_ */
