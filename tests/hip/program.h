// What a framework does with HIP, as a library that is linked to a runtime instance: the one that is
// installed, or one of its own beside it, as the wheels of PyTorch have it. Everything returns what HIP said.
#pragma once

#include "hip_api.h"

extern "C" {
#pragma GCC visibility push(default)

hipError_t ProgramStream(hipStream_t* stream);
hipError_t ProgramMemory(void** memory, size_t bytes);
hipError_t ProgramRead(void* to, const void* from, size_t bytes);
hipError_t ProgramSynchronize(hipStream_t stream);

// A kernel of the library's own, as the compiler launches it.
hipError_t ProgramRandomFill(hipStream_t stream, float* to, int count, unsigned seed);
hipError_t ProgramAppend(hipStream_t stream, int* log, int value);
// As rocBLAS: a kernel of a code object, with hipExtModuleLaunchKernel.
hipError_t ProgramMatmul(hipStream_t stream, float* c, const float* a, const float* b, int m, int n, int k);
// As MIOpen: the arguments in one buffer, and an event before and after.
hipError_t ProgramConvolve(hipStream_t stream, float* y, const float* x, const float* w, int count, int taps);

// Its kernels, for code that launches them in its place.
const void* ProgramKernel();
hipError_t ProgramFunction(hipFunction_t* function, const char* kernel);

#pragma GCC visibility pop
}
