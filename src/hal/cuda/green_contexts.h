// The program's green contexts. Each has streams of its own, and shares memory, code and errors with its
// device's primary context: the context that owns it. A green context can be current to one thread at a time,
// so threads of ours make its owner current instead.
#pragma once

#include "cuda/functions.h"
#include "hal/contract.h"

#ifdef __cplusplus
extern "C" {
#endif

// `green`: as cuCtxFromGreenCtx returns it.
XSCHED_PRIVATE void CudaGreenContextMade(CUcontext green, CUcontext owner);
XSCHED_PRIVATE void CudaGreenContextGone(CUcontext green);
// The owner of a green context. Any other context owns itself. Lock-free.
XSCHED_PRIVATE CUcontext CudaOwnerOf(CUcontext context);

#ifdef __cplusplus
}
#endif
