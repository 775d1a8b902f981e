// The instances of the HIP runtime (hal/hip/runtime.h) that wrapped calls go to, and the functions of each. A
// call finds its instance in one of two ways:
//
//   by linking   A program calls hipX and reaches our exported function. The call goes to the instance that
//                the calling library is bound to. This is found once per call site.
//   by pointer   The program calls a function that was looked up in an instance (dlsym, hipGetProcAddress),
//                or an entry of its dispatch table. Each instance has its own wrappers, so the wrapper knows
//                the instance.
#pragma once

#include <atomic>

#include "hal/hip/runtime.h"
#include "hip/functions.h"

namespace xsched::hip {

// So many instances have wrappers for calls by pointer. Calls to further instances are intercepted by linking
// only.
inline constexpr int kMaxInstances = 8;

class Instance {
 public:
  // Call it before the tables are set. Further calls do nothing.
  void Register(Runtime& runtime);
  // REQUIRES: it is registered.
  Runtime& runtime() const { return *runtime_.load(std::memory_order_acquire); }

  // The functions that programs link to; null: not looked up yet.
  std::atomic<const WrappedFunctions*> exported{nullptr};
  // The functions for calls by pointer: those that its dispatch table had before us, or the exported ones if
  // it has no table.
  std::atomic<const WrappedFunctions*> by_pointer{nullptr};
  WrappedFunctions exported_functions = {};
  WrappedFunctions table_functions = {};

 private:
  std::atomic<Runtime*> runtime_{nullptr};
};

extern Instance instances[kMaxRuntimes];
// The number of registered instances.
extern std::atomic<int> instance_count;

struct Target {
  Instance* instance;
  const WrappedFunctions* next;
};

// Stands for a missing instance: it has no functions.
extern Instance nowhere;

// The caller's own instance, or `nowhere`. `site`: the return address of the call.
Target ByLinking(const void* site);
// For a function or variable of the program's: the instance of its library. Nowhere: it is in none.
Target ByCode(const void* address);
inline Target ByPointer(Instance& instance) {
  return {&instance, instance.by_pointer.load(std::memory_order_acquire)};
}

// Looks up its functions, if this was not done. Null: there is no such instance, or its library could not be
// opened; the next call tries again.
Instance* InstanceOf(Runtime* runtime);

// Logs that `site` is bound to the instance, once per library, if the user wants it.
void LogBinding(const void* site, const Instance& instance);
// Libraries were unloaded.
void ForgetCallers();

}  // namespace xsched::hip
