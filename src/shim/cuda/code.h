// Which functions and kernels have been used before: the driver may load their code as late as that, which
// waits for all that is on the context (CUDA_MODULE_LOADING=LAZY, the default).
#pragma once

#include <optional>

#include "cuda/functions.h"
#include "preempt/api/launch.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {

// Functions' and kernels' handles may be others' from now on.
void ForgetUsedCode();

// Around a call that may load the code of a function or kernel: a barrier the first time in a context.
class CodeUse {
 public:
  CodeUse(const Call&, CUfunction function) : CodeUse(reinterpret_cast<uint64_t>(function)) {}
  CodeUse(const Call&, CUkernel kernel) : CodeUse(reinterpret_cast<uint64_t>(kernel)) {}
  void Finish(CUresult) {}

 private:
  explicit CodeUse(uint64_t handle) {
    if (IsFirst(handle)) [[unlikely]]
      LetGo();
  }
  void LetGo();
  // True once per handle, context and life of the code. Takes no lock but then.
  static bool IsFirst(uint64_t handle);

  std::optional<preempt::Barrier> barrier_;
};

// Around cuModuleUnload and cuLibraryUnload, which wait for all that the context has been given as well.
class CodeUnloading {
 public:
  explicit CodeUnloading(const Call& call) : drain_(call, nullptr) { ForgetUsedCode(); }
  void Finish(CUresult) {}

 private:
  Drain drain_;
};

// The same, from a command that is counted among what the context has been given: it cannot wait for that.
class CodeUnloadingInCommand {
 public:
  explicit CodeUnloadingInCommand(const Call&) { ForgetUsedCode(); }
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
