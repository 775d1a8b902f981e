/* HIP streams as hardware queues, with preemption level 1. Levels 2 and 3 are experimental (XSCHED_HIP_LEVEL).
 *
 * With XSched's shim (xsched run) everything that a program launches on such a stream is scheduled; without it, only what the
 * program passes to XQueueSubmit. HIP has no gates: a launch on a held stream waits until the stream may run. So the thread
 * that suspends a stream must not be the one that launches on it. Usable with and without the HIP headers. Thread-safe.
 * Needs libhalhip and libpreempt.
 */
#ifndef XSCHED_HIP_HAL_H_
#define XSCHED_HIP_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in hip_runtime_api.h. */
typedef struct ihipStream_t *hipStream_t;

/* Creates a HwQueue over `stream`, or returns the one that it has (made by HipQueueCreate, or by the shim). The stream must
 * live until HwQueueDestroy (with a shim it may be destroyed before). It may belong to any runtime instance (libamdhip64) that the process has loaded; XSched finds that instance. Null:
 * the default stream of the current device, of the runtime instance that the caller is linked to. If the caller is linked
 * to none (Python), it is the instance that XSCHED_HIP_LIB names, or the first that was loaded. XSCHED_HIP_LIB is the path
 * of a libamdhip64; XSched opens it only if the process has loaded none. May be called at any time, from any thread.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null, no runtime instance knows the stream, or it is hipStreamPerThread (it
 * has a queue per thread, which the shim creates); kXSchedErrorNotFound: no HIP runtime is loaded; kXSchedErrorHardware: the
 * runtime does not report the stream's device; kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult HipQueueCreate(HwQueueHandle *hwq, hipStream_t stream);

/* Returns the HwQueue of `stream`, created by HipQueueCreate, or by the shim at the stream's first command.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null; kXSchedErrorNotFound: it has none. */
XSCHED_API XResult HipQueueGet(HwQueueHandle *hwq, hipStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_HIP_HAL_H_ */
