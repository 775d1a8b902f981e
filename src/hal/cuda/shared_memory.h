// The control blocks' memory, as CUDA's devices see it. A registration ends with its context, and so does the
// devices' mapping. So each context has its own registration, of its own host mapping.
#pragma once

#include <stddef.h>

#include "cuda/functions.h"

namespace xsched::cuda {

// The device's address of `memory` in `context`. Registers it on first use there. 0: the driver refused.
// Takes locks. REQUIRES: `context` is current, and capture mode is relaxed.
CUdeviceptr SharedMemoryIn(const Functions& next, CUcontext context, void* memory, size_t size);

// The context is being destroyed, and its registration with it. Call before the driver's call.
void ForgetSharedMemory(CUcontext context);
// The context was destroyed: the host mapping may be registered in another. Call after the driver's call.
void ReuseSharedMemory(CUcontext context);

}  // namespace xsched::cuda
