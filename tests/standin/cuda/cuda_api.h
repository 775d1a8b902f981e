// cuda.h with every version of every function under the name that it has in the library (cuMemAlloc is the
// first one, cuMemAlloc_v2 the second), and nothing renamed. Never included by tests.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

// Exists for programs built without the macro above only.
#undef cuGetProcAddress_v2
