#include "hal/opencl/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

namespace xsched::opencl {
namespace {

void* OpenRuntime() {
  if (const char* path = EnvText("XSCHED_OPENCL_LIB")) {
    if (void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return library;
    XSCHED_WARN("XSCHED_OPENCL_LIB: %s: using what the program has loaded", dlerror());
  }
  void* library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
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
    void* library = OpenRuntime();
    for (int i = 0; i < kFunctionCount; ++i) {
      void* function = dlsym(library, kFunctionNames[i]);
      memcpy(reinterpret_cast<char*>(&runtime.functions) + i * sizeof function, &function, sizeof function);
    }
    runtime.found =
        runtime.functions.clGetCommandQueueInfo != nullptr && runtime.functions.clCreateUserEvent != nullptr;
  });
  return runtime.found ? &runtime.functions : nullptr;
}

}  // namespace xsched::opencl
