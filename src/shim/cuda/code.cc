#include "shim/cuda/code.h"

#include "base/array.h"
#include "base/fork_handler.h"

namespace xsched::cuda {
namespace {

// Code may be loaded before its first use. Then the driver waits for nothing.
constexpr Duration kLoadPatience = std::chrono::milliseconds(5);

enum class CodeState { kNotLoaded, kLoaded, kUnknown };

// Unknown: it is a kernel, or the driver is older than 12.4. The driver waits for nothing to answer.
CodeState StateOf(const Call& call, uint64_t handle) {
  preempt::ReentrancyGuard guard;
  const auto ask = call.next().cuFuncIsLoaded;
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  if (ask == nullptr || ask(&state, reinterpret_cast<CUfunction>(handle)) != CUDA_SUCCESS)
    return CodeState::kUnknown;
  return state == CU_FUNCTION_LOADING_STATE_LOADED ? CodeState::kLoaded : CodeState::kNotLoaded;
}

}  // namespace

constinit std::atomic<uint64_t> UsedCode::now_{1};
constinit NoDestroy<PointerMap<UsedCode::Use>> UsedCode::used_;
constinit NoDestroy<PointerMap<UsedCode::Use>> UsedCode::unloaded_kernels_;

bool UsedCode::StillHas(const Call& call, uint64_t handle, CUcontext context) {
  const auto used = reinterpret_cast<uint64_t>(used_->Find(KeyOf(handle, context)));
  if (used == 0 || used / kContextEnds != Now() / kContextEnds) return false;
  const CodeState state = StateOf(call, handle);
  if (state != CodeState::kUnknown) return state == CodeState::kLoaded;
  return used >= reinterpret_cast<uint64_t>(unloaded_kernels_->Find(handle));
}

void UsedCode::Add(uint64_t handle, CUcontext context) {
  static constinit ForkHandler fork_handler = {[] {
    used_->ResetAfterFork();
    unloaded_kernels_->ResetAfterFork();
  }};
  fork_handler.Install();
  used_->Insert(KeyOf(handle, context), reinterpret_cast<Use*>(Now()));
}

void UsedCode::Unloads(const Call& call, CUlibrary library) {
  const uint64_t now = now_.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (library != nullptr && !UnloadKernels(call, library, now)) Forget();
}

// False: the driver does not say which they are (before 12.4), or out of memory.
bool UsedCode::UnloadKernels(const Call& call, CUlibrary library, uint64_t now) {
  preempt::ReentrancyGuard guard;
  const Functions& next = call.next();
  unsigned count = 0;
  if (next.cuLibraryGetKernelCount == nullptr || next.cuLibraryEnumerateKernels == nullptr ||
      next.cuLibraryGetKernelCount(&count, library) != CUDA_SUCCESS)
    return false;
  Array<CUkernel> kernels;
  if (!kernels.Append(count) ||
      next.cuLibraryEnumerateKernels(kernels.data(), count, library) != CUDA_SUCCESS)
    return false;
  for (const CUkernel kernel : kernels) {
    if (!unloaded_kernels_->Insert(reinterpret_cast<uint64_t>(kernel), reinterpret_cast<Use*>(now)))
      return false;
  }
  return true;
}

void CodeUse::UseFirst(const Call& call, uint64_t handle, CUcontext context) {
  const bool loaded = UsedCode::StillHas(call, handle, context);
  UsedCode::Add(handle, context);
  if (loaded) return;
  AwaitGivenTo(nullptr, kLoadPatience);
  barrier_.emplace();
}

}  // namespace xsched::cuda
