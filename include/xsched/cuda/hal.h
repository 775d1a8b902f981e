/* CUDA streams as hardware queues, with preemption levels 1 to 3.
 *
 * Under XSched's shim (xsched run, LD_PRELOAD) what a program puts on such a stream is scheduled; without one, what it gives
 * to XQueueSubmit. Level 2 needs a device that can wait for host memory (stream memory operations); level 3 needs the shim,
 * and no MPS. Usable with and without the CUDA headers. Thread-safe. Needs libhalcuda and libpreempt.
 */
#ifndef XSCHED_CUDA_HAL_H_
#define XSCHED_CUDA_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in cuda.h; a cudaStream_t is the same. */
typedef struct CUstream_st *CUstream;

/* Makes a HwQueue over `stream`, which must live until HwQueueDestroy (under a shim it may be destroyed before). Null or
 * CU_STREAM_LEGACY: the default stream of the current context. The stream's context must be current.
 * XSCHED_CUDA_LIB names the driver library to use if it is not the one that is loaded as libcuda.so.1.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null, or the stream is CU_STREAM_PER_THREAD (it has a queue per thread, which
 * the shim makes); kXSchedErrorNotAllowed: the stream has a HwQueue, which is then *hwq; kXSchedErrorNotFound: no CUDA driver
 * is loaded; kXSchedErrorHardware: no context is current; kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult CudaQueueCreate(HwQueueHandle *hwq, CUstream stream);

/* The HwQueue of `stream`, made by CudaQueueCreate or by the shim at its first command.
 * Errors: kXSchedErrorInvalidValue: `hwq` is null; kXSchedErrorNotFound: it has none. */
XSCHED_API XResult CudaQueueGet(HwQueueHandle *hwq, CUstream stream);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_CUDA_HAL_H_ */
