// The kernels of the HIP tests, as a program has them: compiled by clang, registered when the library or
// program that they are linked into is loaded. What they do is written in tests/standin/hsa/kernels.h: over
// the software HSA agent their instructions are never run.
#pragma once

#include "hip_api.h"

// What hipLaunchKernel and its like call a kernel.
extern const void* const kKernelNop;
extern const void* const kKernelSpinUs;      // (int us)
extern const void* const kKernelAwait;       // (const int* p, int v)
extern const void* const kKernelStore;       // (int* p, int v)
extern const void* const kKernelAdd;         // (int* p, int v)
extern const void* const kKernelAppend;      // (int* log, int v)
extern const void* const kKernelRandomFill;  // (float* p, int n, unsigned seed)

// Launched as the source says `kernel<<<…>>>(…)`.
void LaunchAppend(hipStream_t stream, int* log, int value);
void LaunchRandomFill(hipStream_t stream, float* to, int count, unsigned seed);
void LaunchVectorAdd(hipStream_t stream, float* c, const float* a, const float* b, int count);
void LaunchMatmul(hipStream_t stream, float* c, const float* a, const float* b, int m, int n, int k);
