// The OpenCL library of a program that runs without a shim.
#pragma once

#include "opencl/functions.h"

namespace xsched::opencl {

// XSCHED_OPENCL_LIB; else the library that the process has loaded as libOpenCL.so.1 (never a second copy);
// else what its global scope has. Null: none. The result stays.
const Functions* FindRuntime();

}  // namespace xsched::opencl
