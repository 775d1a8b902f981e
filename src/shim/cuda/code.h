// Remembers which functions and kernels have been used. The driver may load their code at the first use, and
// then waits for all work of the context (CUDA_MODULE_LOADING=LAZY, the default).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "cuda/functions.h"
#include "preempt/api/launch.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {

// Every launch looks here, so it is inline.
class UsedCode {
 public:
  // True if the function or kernel has been used in the context since code was last unloaded.
  [[gnu::always_inline]] static bool Has(uint64_t handle, CUcontext context) {
    return used_->Find(KeyOf(handle, context)) == Now();
  }
  static void Add(uint64_t handle, CUcontext context);
  // From now on, handles of functions and kernels may be reused.
  static void Forget() { unloadings_.fetch_add(1, std::memory_order_release); }

 private:
  // The count of unloadings, stored as a pointer that is never null.
  struct Unloadings {};
  static Unloadings* Now() {
    return reinterpret_cast<Unloadings*>(unloadings_.load(std::memory_order_acquire));
  }
  // A kernel belongs to a library, which is loaded into each context separately. If two handles have the same
  // key by chance, this matters only if the second one's first use waits for a held queue. Then the
  // scheduler's watchdog lets that queue run.
  static uint64_t KeyOf(uint64_t handle, CUcontext context) {
    return handle ^ reinterpret_cast<uint64_t>(context) * 0x9e3779b97f4a7c15u;
  }

  static std::atomic<uint64_t> unloadings_;
  // The used functions, with the count of unloadings at that time. Entries with an older count are invalid.
  static NoDestroy<PointerMap<Unloadings>> used_;
};

// The scope of a call that may load the code of a function or kernel: a barrier at the first use in a
// context.
class CodeUse {
 public:
  CodeUse(const Call& call, CUfunction function) : CodeUse(call, reinterpret_cast<uint64_t>(function)) {}
  CodeUse(const Call& call, CUkernel kernel) : CodeUse(call, reinterpret_cast<uint64_t>(kernel)) {}
  void Finish(CUresult) {}

 private:
  [[gnu::always_inline]] CodeUse(const Call& call, uint64_t handle) {
    if (handle == 0) return;
    const CUcontext context = call.context();
    if (!UsedCode::Has(handle, context)) [[unlikely]]
      UseFirst(handle, context);
  }
  // Once per handle, context and loading of the code.
  void UseFirst(uint64_t handle, CUcontext context);

  std::optional<preempt::Barrier> barrier_;
};

// The scope of cuModuleUnload and cuLibraryUnload, which also wait for all work of the context.
class CodeUnloading {
 public:
  explicit CodeUnloading(const Call& call) : drain_(call, nullptr) { UsedCode::Forget(); }
  void Finish(CUresult) {}

 private:
  Drain drain_;
};

// The same inside a command that is itself counted as work of the context: it cannot wait for that work.
class CodeUnloadingInCommand {
 public:
  explicit CodeUnloadingInCommand(const Call&) { UsedCode::Forget(); }
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
