#include "shim/cuda/code.h"

#include <atomic>

#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "shim/common/fork.h"

namespace xsched::cuda {
namespace {

// The count of unloadings, as a pointer that is never null.
struct Unloadings {};
constinit std::atomic<uint64_t> unloadings{1};
Unloadings* Now() { return reinterpret_cast<Unloadings*>(unloadings.load(std::memory_order_acquire)); }

// Functions that have been launched, with the count by then: entries of an older one say nothing.
constinit NoDestroy<PointerMap<Unloadings>> launched;

}  // namespace

bool IsFirstLaunch(CUfunction function) {
  static constinit shim::ForkHandler fork_handler = {[] { launched->ResetAfterFork(); }};
  const auto key = reinterpret_cast<uint64_t>(function);
  Unloadings* now = Now();
  if (key == 0 || launched->Find(key) == now) [[likely]]
    return false;
  if (preempt::InsideXSched()) return false;
  fork_handler.Install();
  launched->Insert(key, now);
  return true;
}

void ForgetLaunchedFunctions() { unloadings.fetch_add(1, std::memory_order_release); }

}  // namespace xsched::cuda
