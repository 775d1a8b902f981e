#include "program.h"

#include <fstream>
#include <iterator>
#include <string>

#include <hip/hip_ext.h>

#include "kernels.h"

namespace {

// The file's content stays: the runtime may read it as long as the module lives.
const std::string& CodeObject() {
  static const auto* const content = [] {
    std::ifstream file(TEST_CODE_OBJECT, std::ios::binary);
    return new std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return *content;
}

}  // namespace

hipError_t ProgramStream(hipStream_t* stream) {
  return hipStreamCreateWithFlags(stream, hipStreamNonBlocking);
}
hipError_t ProgramMemory(void** memory, size_t bytes) {
  hipError_t error = hipMalloc(memory, bytes);
  if (error == hipSuccess) error = hipMemset(*memory, 0, bytes);
  // Newer runtimes may return before, and the program's stream does not wait for the null stream.
  return error == hipSuccess ? hipStreamSynchronize(nullptr) : error;
}
hipError_t ProgramRead(void* to, const void* from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}
hipError_t ProgramSynchronize(hipStream_t stream) { return hipStreamSynchronize(stream); }

hipError_t ProgramRandomFill(hipStream_t stream, float* to, int count, unsigned seed) {
  LaunchRandomFill(stream, to, count, seed);
  return hipGetLastError();
}
hipError_t ProgramAppend(hipStream_t stream, int* log, int value) {
  LaunchAppend(stream, log, value);
  return hipGetLastError();
}

hipError_t ProgramFunction(hipFunction_t* function, const char* kernel) {
  static hipModule_t module = nullptr;
  if (module == nullptr) {
    if (hipError_t error = hipModuleLoadData(&module, CodeObject().data()); error != hipSuccess) return error;
  }
  return hipModuleGetFunction(function, module, kernel);
}

hipError_t ProgramMatmul(hipStream_t stream, float* c, const float* a, const float* b, int m, int n, int k) {
  hipFunction_t function = nullptr;
  if (hipError_t error = ProgramFunction(&function, "matmul"); error != hipSuccess) return error;
  void* arguments[] = {&c, &a, &b, &m, &n, &k};
  return hipExtModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr, nullptr,
                                  nullptr, 0);
}

hipError_t ProgramConvolve(hipStream_t stream, float* y, const float* x, const float* w, int count,
                           int taps) {
  hipFunction_t function = nullptr;
  if (hipError_t error = ProgramFunction(&function, "convolve"); error != hipSuccess) return error;
  struct {
    float* y;
    const float *x, *w;
    int count, taps;
  } arguments = {y, x, w, count, taps};
  size_t size = sizeof arguments;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   HIP_LAUNCH_PARAM_END};
  hipEvent_t before = nullptr, after = nullptr;
  if (hipError_t error = hipEventCreate(&before); error != hipSuccess) return error;
  if (hipError_t error = hipEventCreate(&after); error != hipSuccess) return error;
  hipError_t error =
      hipExtModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, nullptr, extra, before, after, 0);
  if (error == hipSuccess) error = hipEventSynchronize(after);
  float elapsed_ms = -1;
  if (error == hipSuccess) error = hipEventElapsedTime(&elapsed_ms, before, after);
  if (hipEventDestroy(before) != hipSuccess || hipEventDestroy(after) != hipSuccess) return hipErrorUnknown;
  return error == hipSuccess && elapsed_ms < 0 ? hipErrorUnknown : error;
}

const void* ProgramKernel() { return kKernelAppend; }
