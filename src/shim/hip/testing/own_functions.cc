// What of the stand-in's functions is neither in hal/hip/testing/fake_runtime.cc nor does nothing.
#include <dlfcn.h>

#include <string>

#include "hal/hip/hip_abi.h"
#include "hip/functions.h"
#include "shim/hip/testing/offered_runtime.h"

using namespace xsched::hip;

#define OWN extern "C" __attribute__((visibility("hidden")))

OWN hipError_t Own_hipStreamSynchronize(hipStream_t stream);

OWN hipError_t Own_hipDeviceSynchronize() { return Own_hipStreamSynchronize(nullptr); }

// As AMD's, in this library alone.
OWN hipError_t Own_hipGetProcAddress(const char* symbol, void** pfn, int, uint64_t flags,
                                     hipDriverProcAddressQueryResult*) {
  constexpr uint64_t kPerThread = 2;
  *pfn = FakeExported((flags & kPerThread) != 0 ? (std::string(symbol) + "_spt").c_str() : symbol);
  return *pfn == nullptr ? hipErrorNotFound : hipSuccess;
}
