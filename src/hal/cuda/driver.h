// The CUDA driver of this process.
#pragma once

#include "cuda/functions.h"
#include "hal/contract.h"

namespace xsched::cuda {

// The functions of XSCHED_CUDA_LIB, or else of the library that the process has loaded as libcuda.so.1. Never
// loads a second instance. Null: none is loaded yet. The result stays valid, and the library stays loaded.
XSCHED_PRIVATE const Functions* FindDriver();

}  // namespace xsched::cuda
