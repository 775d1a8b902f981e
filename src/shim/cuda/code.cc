#include "shim/cuda/code.h"

#include <atomic>

#include "base/fork_handler.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace xsched::cuda {
namespace {

// The count of unloadings, stored as a pointer that is never null.
struct Unloadings {};
constinit std::atomic<uint64_t> unloadings{1};
Unloadings* Now() { return reinterpret_cast<Unloadings*>(unloadings.load(std::memory_order_acquire)); }

// Code may be loaded before its first use. Then the driver waits for nothing.
constexpr Duration kLoadPatience = std::chrono::milliseconds(5);

// The used functions, with the count of unloadings at that time. Entries with an older count are invalid.
constinit NoDestroy<PointerMap<Unloadings>> used;

// A kernel belongs to a library, which is loaded into each context separately. If two handles have the same
// key by chance, this matters only if the second one's first use waits for a held queue. Then the scheduler's
// watchdog lets that queue run.
uint64_t KeyOf(uint64_t handle, CUcontext context) {
  return handle ^ reinterpret_cast<uint64_t>(context) * 0x9e3779b97f4a7c15u;
}

}  // namespace

bool CodeUse::IsFirst(uint64_t handle, CUcontext context) {
  static constinit ForkHandler fork_handler = {[] { used->ResetAfterFork(); }};
  const uint64_t key = KeyOf(handle, context);
  Unloadings* now = Now();
  if (handle == 0 || used->Find(key) == now) [[likely]]
    return false;
  fork_handler.Install();
  used->Insert(key, now);
  return true;
}

void CodeUse::LetGo() {
  AwaitGivenTo(nullptr, kLoadPatience);
  barrier_.emplace();
}

void ForgetUsedCode() { unloadings.fetch_add(1, std::memory_order_release); }

}  // namespace xsched::cuda
