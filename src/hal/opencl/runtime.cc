#include "hal/opencl/runtime.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/driver_library.h"

namespace xsched::opencl {
namespace {

void* OpenRuntime() {
  void* library = OpenDriverLibrary("XSCHED_OPENCL_LIB", "libOpenCL.so.1");
  return library != nullptr ? library : RTLD_DEFAULT;
}

struct Runtime {
  bool found = false;
  Functions functions{};
};

}  // namespace

const Functions* FindRuntime() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static Runtime runtime;
  pthread_once(&once, [] {
    FindFunctions(OpenRuntime(), kFunctionNames, kFunctionCount, &runtime.functions);
    runtime.found =
        runtime.functions.clGetCommandQueueInfo != nullptr && runtime.functions.clCreateUserEvent != nullptr;
  });
  return runtime.found ? &runtime.functions : nullptr;
}

}  // namespace xsched::opencl
