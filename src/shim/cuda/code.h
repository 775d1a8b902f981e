// Remembers which functions and kernels have been used. The driver may load their code at the first use, and
// then waits for all work of the context (CUDA_MODULE_LOADING=LAZY, the default).
#pragma once

#include <optional>

#include "cuda/functions.h"
#include "preempt/api/launch.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {

// From now on, handles of functions and kernels may be reused.
void ForgetUsedCode();

// The scope of a call that may load the code of a function or kernel: a barrier at the first use in a
// context.
class CodeUse {
 public:
  CodeUse(const Call& call, CUfunction function) : CodeUse(call, reinterpret_cast<uint64_t>(function)) {}
  CodeUse(const Call& call, CUkernel kernel) : CodeUse(call, reinterpret_cast<uint64_t>(kernel)) {}
  void Finish(CUresult) {}

 private:
  CodeUse(const Call& call, uint64_t handle) {
    if (IsFirst(handle, call.context())) [[unlikely]]
      LetGo();
  }
  void LetGo();
  // True once per handle, context and loading of the code. Takes a lock only then.
  static bool IsFirst(uint64_t handle, CUcontext context);

  std::optional<preempt::Barrier> barrier_;
};

// The scope of cuModuleUnload and cuLibraryUnload, which also wait for all work of the context.
class CodeUnloading {
 public:
  explicit CodeUnloading(const Call& call) : drain_(call, nullptr) { ForgetUsedCode(); }
  void Finish(CUresult) {}

 private:
  Drain drain_;
};

// The same inside a command that is itself counted as work of the context: it cannot wait for that work.
class CodeUnloadingInCommand {
 public:
  explicit CodeUnloadingInCommand(const Call&) { ForgetUsedCode(); }
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
