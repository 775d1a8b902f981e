// The control blocks' memory, as CUDA's devices see it.
#pragma once

#include "cuda/functions.h"
#include "preempt/hal.h"

namespace xsched::cuda {

// The device's address of `word`, which lies in words.memory. Registers the memory with the driver on first
// use in the process; 0: the driver refused. REQUIRES: a context is current, and capture mode is relaxed.
CUdeviceptr DeviceAddress(const Functions& next, const XControlWords& words, const void* word);

// The context is going, and what was registered in it with it.
void ForgetSharedMemory(CUcontext context);

}  // namespace xsched::cuda
