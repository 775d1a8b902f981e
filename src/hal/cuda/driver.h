// The CUDA driver of this process.
#pragma once

#include "cuda/functions.h"
#include "hal/contract.h"

namespace xsched::cuda {

// The functions of XSCHED_CUDA_LIB; else of the library that the process has loaded as libcuda.so.1 (never a
// second copy). Null: none is loaded so far. The result stays, and so does the library.
XSCHED_PRIVATE const Functions* FindDriver();

}  // namespace xsched::cuda
