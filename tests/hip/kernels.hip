// No device library is wanted for these, hence not hip_runtime.h.
#include "kernels.h"

#define __global__ __attribute__((global))

extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
extern "C" hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, hipStream_t* stream);

// Enough that the arguments stay.
extern "C" {
__global__ void nop() {}
__global__ void spin_us(int us) { asm volatile("" ::"v"(us)); }
__global__ void await(const int* p, int v) { asm volatile("" ::"v"(p), "v"(v)); }
__global__ void store(int* p, int v) { *p = v; }
__global__ void add(int* p, int v) { *p += v; }
__global__ void append(int* log, int v) { log[1 + log[0]++] = v; }
__global__ void random_fill(float* p, int n, unsigned seed) { p[0] = n * seed; }
__global__ void matmul(float* c, const float* a, const float* b, int m, int n, int k) { c[m] = a[n] * b[k]; }
__global__ void convolve(float* y, const float* x, const float* w, int n, int taps) { y[n] = x[n] * w[taps]; }
}
__global__ void vector_add(float* c, const float* a, const float* b, int n) { c[n] = a[n] + b[n]; }

const void* const kKernelNop = reinterpret_cast<const void*>(nop);
const void* const kKernelSpinUs = reinterpret_cast<const void*>(spin_us);
const void* const kKernelAwait = reinterpret_cast<const void*>(await);
const void* const kKernelStore = reinterpret_cast<const void*>(store);
const void* const kKernelAdd = reinterpret_cast<const void*>(add);
const void* const kKernelAppend = reinterpret_cast<const void*>(append);
const void* const kKernelRandomFill = reinterpret_cast<const void*>(random_fill);

void LaunchAppend(hipStream_t stream, int* log, int value) { append<<<1, 64, 0, stream>>>(log, value); }
void LaunchRandomFill(hipStream_t stream, float* to, int count, unsigned seed) {
  random_fill<<<1, 64, 0, stream>>>(to, count, seed);
}
void LaunchVectorAdd(hipStream_t stream, float* c, const float* a, const float* b, int count) {
  vector_add<<<1, 64, 0, stream>>>(c, a, b, count);
}
void LaunchMatmul(hipStream_t stream, float* c, const float* a, const float* b, int m, int n, int k) {
  matmul<<<dim3(1, 1), dim3(64, 1), 0, stream>>>(c, a, b, m, n, k);
}
