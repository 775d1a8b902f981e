// The driver's own functions, which wrappers call. There is one CUDA driver in a process.
#pragma once

#include <atomic>

#include "cuda/functions.h"

namespace xsched::cuda {

extern std::atomic<const Functions*> driver;
// Looks for the driver. While none is loaded, all functions are null.
const Functions& LookUpDriver();

[[gnu::always_inline]] inline const Functions& Driver() {
  const Functions* known = driver.load(std::memory_order_acquire);
  if (known == nullptr) [[unlikely]]
    return LookUpDriver();
  return *known;
}

// The function with index `function` in kFunctionNames.
inline void* DriverAddress(int function) { return reinterpret_cast<void* const*>(&Driver())[function]; }

// Asks the driver. Null: none is current.
inline CUcontext CurrentContext() {
  CUcontext context = nullptr;
  const Functions& next = Driver();
  if (next.cuCtxGetCurrent == nullptr || next.cuCtxGetCurrent(&context) != CUDA_SUCCESS) return nullptr;
  return context;
}

}  // namespace xsched::cuda
