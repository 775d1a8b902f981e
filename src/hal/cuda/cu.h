// The installed CUDA headers, with every version of every function under the name that it is exported with:
// cuMemFree is the driver's oldest, not (as in programs) another name for cuMemFree_v2.
#pragma once

#define __CUDA_API_VERSION_INTERNAL

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaTypedefs.h>
#pragma GCC visibility pop
