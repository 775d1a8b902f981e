// A CUDA stream below an XQueue: device-side gates by stream memory operations, and the rest of
// hal/contract.h.
#pragma once

#include "cuda/functions.h"
#include "hal/contract.h"

#ifdef __cplusplus
extern "C" {
#endif

// CudaQueueCreate for the shim, which knows the functions and the stream's identity. `next` must stay valid.
// `stream` is a real handle, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, of `context`. This context is current,
// or the owner of this green context (green_contexts.h).
// HwQueueFind finds it by `key`.
XSCHED_PRIVATE XResult CudaQueueRegister(const xsched::cuda::Functions* next, CUcontext context,
                                         CUstream stream, uint64_t key, HwQueueHandle* out);
// The priority that the program has given to the stream with this key: in the driver, XSched may have changed
// it. False: it has not, because the stream is not registered.
XSCHED_PRIVATE bool CudaOwnPriority(uint64_t key, int* priority);
// The program has given it another one.
XSCHED_PRIVATE void CudaOwnPriorityIs(uint64_t key, int priority);
// The context is being destroyed with all of its streams. Its queues have been unregistered.
XSCHED_PRIVATE void CudaContextGoes(CUcontext context);
// The context has been destroyed.
XSCHED_PRIVATE void CudaContextGone(CUcontext context);
// It was not destroyed.
XSCHED_PRIVATE void CudaContextStays(CUcontext context);

#ifdef __cplusplus
}
#endif
