// The control blocks' memory, as CUDA's devices see it. A registration ends with the context that it was made
// in, and the devices' mapping with it: so each context has one of its own, of a host mapping of its own.
#pragma once

#include <stddef.h>

#include "cuda/functions.h"

namespace xsched::cuda {

// The address of `memory` in `context`. Registers it on first use there; 0: the driver refused. Takes locks.
// REQUIRES: `context` is current, and capture mode is relaxed.
CUdeviceptr SharedMemoryIn(const Functions& next, CUcontext context, void* memory, size_t size);

// The context (null: any) is going: its registration goes with it. Before the driver's call.
void ForgetSharedMemory(CUcontext context);
// It has gone: the host mapping may be registered in another. After the driver's call.
void ReuseSharedMemory(CUcontext context);

}  // namespace xsched::cuda
