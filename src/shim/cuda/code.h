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
  // True if the function or kernel has been used in the context, and no code was unloaded since.
  [[gnu::always_inline]] static bool Has(uint64_t handle, CUcontext context) {
    return used_->Find(KeyOf(handle, context)) == reinterpret_cast<Use*>(Now());
  }
  // Some code was unloaded since. True if the handle is still that of the function or kernel that was used in
  // the context, and its code is still loaded there. When in doubt, it is not.
  static bool StillHas(const Call& call, uint64_t handle, CUcontext context);
  static void Add(uint64_t handle, CUcontext context);
  // From now on, handles of functions may be reused, and those of the library's kernels; null: no library is
  // unloaded. REQUIRES: the library exists.
  static void Unloads(const Call& call, CUlibrary library);
  // A context ends, and all code that was loaded there.
  static void Forget() { now_.fetch_add(kContextEnds, std::memory_order_release); }

 private:
  // The time of a use, stored as a pointer that is never null. Time is counted in unloadings, and above them
  // in ends of contexts.
  struct Use {};
  static constexpr uint64_t kContextEnds = uint64_t{1} << 32;
  static uint64_t Now() { return now_.load(std::memory_order_acquire); }
  // A kernel belongs to a library, which is loaded into each context separately. If two handles have the same
  // key by chance, this matters only if the second one's first use waits for a held queue. Then the
  // scheduler's watchdog lets that queue run.
  static uint64_t KeyOf(uint64_t handle, CUcontext context) {
    return handle ^ reinterpret_cast<uint64_t>(context) * 0x9e3779b97f4a7c15u;
  }
  static bool UnloadKernels(const Call& call, CUlibrary library, uint64_t now);

  static std::atomic<uint64_t> now_;
  static NoDestroy<PointerMap<Use>> used_;
  // The kernels of libraries that were unloaded, by handle, with the time of it. The handle may have come
  // back since.
  static NoDestroy<PointerMap<Use>> unloaded_kernels_;
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
      UseFirst(call, handle, context);
  }
  // Once per handle and context, and again after each unloading of code.
  void UseFirst(const Call& call, uint64_t handle, CUcontext context);

  std::optional<preempt::Barrier> barrier_;
};

// The scope of cuModuleUnload and cuLibraryUnload, which also wait for all work of the context.
class CodeUnloading {
 public:
  CodeUnloading(const Call& call, CUlibrary library) : drain_(call, nullptr) {
    UsedCode::Unloads(call, library);
  }
  void Finish(CUresult) {}

 private:
  Drain drain_;
};

// The same inside a command that is itself counted as work of the context: it cannot wait for that work.
class CodeUnloadingInCommand {
 public:
  CodeUnloadingInCommand(const Call& call, CUlibrary library) { UsedCode::Unloads(call, library); }
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
