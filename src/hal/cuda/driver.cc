#include "hal/cuda/driver.h"

#include <atomic>

#include "base/driver_library.h"
#include "base/fork_handler.h"
#include "base/mutex.h"
#include "preempt/api/launch.h"

namespace xsched::cuda {
namespace {

constinit Mutex<LockRank::kCudaDriver> mutex;  // serializes filling the table
constinit Functions functions = {};            // complete once `found` is set
constinit std::atomic<bool> found{false};

}  // namespace

const Functions* FindDriver() {
  if (found.load(std::memory_order_acquire)) [[likely]]
    return &functions;
  // With this guard, the shim's dlsym returns the driver's functions.
  preempt::ReentrancyGuard guard;
  void* library = OpenDriverLibrary("XSCHED_CUDA_LIB", "libcuda.so.1");
  if (library == nullptr) return nullptr;
  Functions in_library = {};
  FindFunctions(library, kFunctionNames, kFunctionCount, &in_library);
  static constinit ForkHandler handler = {[] { mutex.ResetAfterFork(); }};
  handler.Install();
  MutexLock lock(mutex);
  if (found.load(std::memory_order_relaxed)) return &functions;
  functions = in_library;
  found.store(true, std::memory_order_release);
  return &functions;
}

}  // namespace xsched::cuda
