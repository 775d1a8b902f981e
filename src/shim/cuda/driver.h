// Where wrapped calls go on to: the driver's own functions. There is one CUDA driver in a process.
#pragma once

#include <atomic>

#include "cuda/functions.h"

namespace xsched::cuda {

extern std::atomic<const Functions*> driver;
// Nowhere, while no driver is loaded.
const Functions& FindDriver();

inline const Functions& Driver() {
  const Functions* known = driver.load(std::memory_order_acquire);
  return known != nullptr ? *known : FindDriver();
}

// The function with index `function` in kFunctionNames.
inline void* DriverFunction(int function) { return reinterpret_cast<void* const*>(&Driver())[function]; }

}  // namespace xsched::cuda
