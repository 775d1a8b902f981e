// From a function's name and its real address to the wrapper that goes on to it.
#pragma once

#include "hal/opencl/driver.h"

namespace xsched::opencl {

// The wrapper of function `name` that goes on to `real`; `real` itself if there is none. `driver`: of the same instance.
void* WrapperByName(const char* name, void* real, const OclDriver* driver);

// The driver functions of the library that holds `address`; null if it lacks some. Made once per library.
const OclDriver* DriverOfLibrary(void* address);

}  // namespace xsched::opencl
