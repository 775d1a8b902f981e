// A library that is linked to one runtime instance, as rocBLAS is.
#include "hip/functions.h"
#include "shim/hip/testing/offered_runtime.h"

using namespace xsched::hip;

extern "C" {

hipError_t hipMemsetAsync(void* dst, int value, size_t sizeBytes, hipStream_t stream);
hipError_t hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx,
                                    uint32_t ly, uint32_t lz, size_t shared, hipStream_t stream,
                                    void** parameters, void** extra, hipEvent_t start, hipEvent_t stop,
                                    uint32_t flags);
hipError_t hipMemcpyToSymbol(const void* symbol, const void* src, size_t size, size_t offset,
                             hipMemcpyKind kind);
hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipModuleLoadData(hipModule_t* module, const void* image);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
hipError_t hipGraphCreate(hipGraph_t* graph, unsigned flags);

#define EXPORT __attribute__((visibility("default")))

// These prevent tail calls, because the callee identifies its caller by the return address.
#define RETURN(call)          \
  hipError_t result = (call); \
  __asm__ volatile("");       \
  return result

EXPORT hipError_t LibrarySet(hipStream_t stream) { RETURN(hipMemsetAsync(nullptr, 0, 0, stream)); }
EXPORT hipError_t LibraryLaunch(hipStream_t stream) {
  RETURN(
      hipExtModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr, nullptr, nullptr, 0));
}
EXPORT hipError_t LibraryMakeStream(hipStream_t* stream) { RETURN(hipStreamCreate(stream)); }
EXPORT hipError_t LibraryDestroyStream(hipStream_t stream) { RETURN(hipStreamDestroy(stream)); }
EXPORT hipError_t LibraryFunction(hipFunction_t* function) {
  hipModule_t module = nullptr;
  if (hipError_t error = hipModuleLoadData(&module, nullptr); error != hipSuccess) return error;
  RETURN(hipModuleGetFunction(function, module, "kernel"));
}
EXPORT hipError_t LibraryGraph(hipGraph_t* graph) { RETURN(hipGraphCreate(graph, 0)); }

// A variable on the device, which the compiler's constructor registers.
static char variable;
__attribute__((constructor)) static void Register() { FakeRegisterVariable(&variable); }
// A tail call: the return address is in the caller of this function.
// NOLINTNEXTLINE(clang-diagnostic-unknown-attributes)
EXPORT __attribute__((optimize("O2"))) hipError_t LibraryCopyToVariable() {
  return hipMemcpyToSymbol(&variable, nullptr, 0, 0, 1);
}

}  // extern "C"
