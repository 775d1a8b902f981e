// The OpenCL library of a program that runs without a shim.
#pragma once

#include "opencl/functions.h"

namespace xsched::opencl {

// XSCHED_OPENCL_LIB, or else the library that the process has loaded as libOpenCL.so.1, or else the functions
// in its global scope. Never loads a second instance. Null: there is none. The result stays valid.
const Functions* FindRuntime();

}  // namespace xsched::opencl
