// A CUDA stream below an XQueue: gates in line through stream memory operations, and the rest of
// hal/contract.h.
#pragma once

#include "cuda/functions.h"
#include "hal/contract.h"

#ifdef __cplusplus
extern "C" {
#endif

// CudaQueueCreate for who knows the functions and the stream's identity; `next` must stay. `stream` is a real
// handle, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, of `context`, which is current; `key` is what it is found
// by. For the shim.
XSCHED_PRIVATE XResult CudaQueueRegister(const xsched::cuda::Functions* next, CUcontext context,
                                         CUstream stream, uint64_t key, HwQueueHandle* out);
// The context (null: any) is going, with all of its streams; its queues have been unregistered.
XSCHED_PRIVATE void CudaContextGoes(CUcontext context);
// … and has gone.
XSCHED_PRIVATE void CudaContextGone(CUcontext context);

#ifdef __cplusplus
}
#endif
