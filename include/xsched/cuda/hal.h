/* CUDA streams as hardware queues, with preemption levels 1 to 3.
 *
 * With XSched's shim (xsched run, LD_PRELOAD) everything that a program launches on such a stream is scheduled; without it,
 * only what the program passes to XQueueSubmit. Level 2 needs a device that can wait for host memory (stream memory
 * operations). Level 3 needs the shim, and does not work with MPS. Usable with and without the CUDA headers. Thread-safe.
 * Needs libhalcuda and libpreempt.
 */
#ifndef XSCHED_CUDA_HAL_H_
#define XSCHED_CUDA_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in cuda.h; a cudaStream_t is the same. */
typedef struct CUstream_st *CUstream;

/* Creates a HwQueue over `stream`, or returns the one that it has (made by CudaQueueCreate, or by the shim). The stream must
 * live until HwQueueDestroy (with a shim it may be destroyed before). Null or CU_STREAM_LEGACY: the default stream of the
 * current context. For any other stream, it does not matter which context is current, and whether one is.
 * XSCHED_CUDA_LIB is the path of the driver library, if it is not the one that is loaded as libcuda.so.1.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null, there is no such stream, or it is CU_STREAM_PER_THREAD (it has a queue per
 * thread, which the shim creates); kXSchedErrorNotFound: no CUDA driver is loaded; kXSchedErrorHardware: a default stream,
 * and no context is current in this thread; kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult CudaQueueCreate(HwQueueHandle *hwq, CUstream stream);

/* Returns the HwQueue of `stream`, created by CudaQueueCreate, or by the shim at the stream's first command.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null; kXSchedErrorNotFound: it has none. */
XSCHED_API XResult CudaQueueGet(HwQueueHandle *hwq, CUstream stream);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_CUDA_HAL_H_ */
