/* HIP streams as hardware queues, with preemption level 1; levels 2 and 3 are there for trying out (XSCHED_HIP_LEVEL).
 *
 * Under XSched's shim (xsched run) what a program puts on such a stream is scheduled; without one, what it gives to
 * XQueueSubmit. HIP has no gates: on a stream that is held a launch waits until the stream may go on, so who suspends a
 * stream and who launches on it are two threads. Usable with and without the HIP headers. Thread-safe. Needs libhalhip and
 * libpreempt.
 */
#ifndef XSCHED_HIP_HAL_H_
#define XSCHED_HIP_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in hip_runtime_api.h. */
typedef struct ihipStream_t *hipStream_t;

/* Makes a HwQueue over `stream`, which must live until HwQueueDestroy (under a shim it may be destroyed before). A stream of
 * any copy of the runtime (libamdhip64) that the process has loaded will do: that copy is found. Null: the default stream of
 * the current device, of the copy that the caller is linked to; for a caller that is linked to none (Python), of the one
 * that XSCHED_HIP_LIB names, or the first that was loaded. XSCHED_HIP_LIB is the path of a libamdhip64; it is opened only if
 * the process has loaded none. May be called at any time, from any thread.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null, no copy knows the stream, or it is hipStreamPerThread (it has a queue per
 * thread, which the shim makes); kXSchedErrorNotAllowed: the stream has a HwQueue, which is then *hwq;
 * kXSchedErrorNotFound: no HIP runtime is loaded; kXSchedErrorHardware: the runtime does not tell its device;
 * kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult HipQueueCreate(HwQueueHandle *hwq, hipStream_t stream);

/* The HwQueue of `stream`, made by HipQueueCreate or by the shim at its first command.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null; kXSchedErrorNotFound: it has none. */
XSCHED_API XResult HipQueueGet(HwQueueHandle *hwq, hipStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_HIP_HAL_H_ */
