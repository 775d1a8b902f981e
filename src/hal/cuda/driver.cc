#include "hal/cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "base/env.h"
#include "base/log.h"
#include "base/mutex.h"
#include "preempt/api/launch.h"

namespace xsched::cuda {
namespace {

constinit Functions functions = {};
constinit std::atomic<bool> found{false};
constinit Mutex mutex;

void* OpenDriver() {
  if (const char* path = EnvText("XSCHED_CUDA_LIB")) {
    if (void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return library;
    XSCHED_WARN("XSCHED_CUDA_LIB: %s: using what the program has loaded", dlerror());
  }
  return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

const Functions* FindDriver() {
  if (found.load(std::memory_order_acquire)) [[likely]]
    return &functions;
  // The shim's dlsym then answers with the driver's functions.
  preempt::ReentrancyGuard guard;
  void* library = OpenDriver();
  if (library == nullptr) return nullptr;
  MutexLock lock(mutex);
  if (found.load(std::memory_order_relaxed)) return &functions;
  for (int i = 0; i < kFunctionCount; ++i) {
    void* function = dlsym(library, kFunctionNames[i]);
    memcpy(reinterpret_cast<char*>(&functions) + i * sizeof function, &function, sizeof function);
  }
  found.store(true, std::memory_order_release);
  return &functions;
}

}  // namespace xsched::cuda
