#include "shim/cuda/code.h"

#include "base/fork_handler.h"

namespace xsched::cuda {
namespace {

// Code may be loaded before its first use. Then the driver waits for nothing.
constexpr Duration kLoadPatience = std::chrono::milliseconds(5);

}  // namespace

constinit std::atomic<uint64_t> UsedCode::unloadings_{1};
constinit NoDestroy<PointerMap<UsedCode::Unloadings>> UsedCode::used_;

void UsedCode::Add(uint64_t handle, CUcontext context) {
  static constinit ForkHandler fork_handler = {[] { used_->ResetAfterFork(); }};
  fork_handler.Install();
  used_->Insert(KeyOf(handle, context), Now());
}

void CodeUse::UseFirst(uint64_t handle, CUcontext context) {
  UsedCode::Add(handle, context);
  AwaitGivenTo(nullptr, kLoadPatience);
  barrier_.emplace();
}

}  // namespace xsched::cuda
