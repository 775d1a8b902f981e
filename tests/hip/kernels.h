// The kernels of the HIP tests, as in a program: compiled by clang, and registered when their library or
// program is loaded. The software HSA agent never runs their instructions. tests/standin/hsa/kernels.h
// defines what they do.
#pragma once

#include "hip_api.h"

// The pointers by which hipLaunchKernel and similar functions identify kernels.
extern const void* const kKernelNop;
extern const void* const kKernelSpinUs;      // (int us)
extern const void* const kKernelAwait;       // (const int* p, int v)
extern const void* const kKernelStore;       // (int* p, int v)
extern const void* const kKernelAdd;         // (int* p, int v)
extern const void* const kKernelAppend;      // (int* log, int v)
extern const void* const kKernelRandomFill;  // (float* p, int n, unsigned seed)

// Launches it as `kernel<<<…>>>(…)` does.
void LaunchAppend(hipStream_t stream, int* log, int value);
void LaunchRandomFill(hipStream_t stream, float* to, int count, unsigned seed);
void LaunchVectorAdd(hipStream_t stream, float* c, const float* a, const float* b, int count);
void LaunchMatmul(hipStream_t stream, float* c, const float* a, const float* b, int m, int n, int k);
