// The instances of the HIP runtime (hal/hip/runtime.h) that calls go on to, and the functions of each. A call
// finds its instance by one of two ways in:
//
//   by linking   a program calls hipX, and reaches the function that we export: it goes on to the instance
//                that the calling library is bound to, found once per call site
//   by pointer   a function that was looked up in an instance (dlsym, hipGetProcAddress), or an entry of its
//                dispatch table: each instance has wrappers of its own, and the one called says which it is
#pragma once

#include <atomic>

#include "hal/hip/runtime.h"
#include "hip/functions.h"

namespace xsched::hip {

// As many have ways in by pointer; calls of more instances are scheduled by linking alone.
inline constexpr int kMaxInstances = 8;

class Instance {
 public:
  // Once is enough; the tables are set after it.
  void Register(Runtime& runtime);
  // REQUIRES: it is registered.
  Runtime& runtime() const { return *runtime_.load(std::memory_order_acquire); }

  // As programs link to them; null: not looked up so far.
  std::atomic<const WrappedFunctions*> exported{nullptr};
  // What a way in by pointer goes on to: what its dispatch table had before us; without one, as exported.
  std::atomic<const WrappedFunctions*> by_pointer{nullptr};
  WrappedFunctions exported_functions = {};
  WrappedFunctions table_functions = {};

 private:
  std::atomic<Runtime*> runtime_{nullptr};
};

extern Instance instances[kMaxRuntimes];
// How many are registered.
extern std::atomic<int> instance_count;

struct Target {
  Instance* instance;
  const WrappedFunctions* next;
};

// The instance where there is none: it has no functions.
extern Instance nowhere;

// The caller's own instance, or nowhere. `site`: where the call returns to.
Target ByLinking(const void* site);
inline Target ByPointer(Instance& instance) {
  return {&instance, instance.by_pointer.load(std::memory_order_acquire)};
}

// Its functions looked up, if they were not. Null: none such.
Instance* InstanceOf(Runtime* runtime);

// `site` is bound to the instance: logged once per library, if that is wanted.
void LogBinding(const void* site, const Instance& instance);
// Libraries have gone.
void ForgetCallers();

}  // namespace xsched::hip
