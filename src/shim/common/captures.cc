#include "shim/common/captures.h"

#include "base/fork_handler.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace xsched::shim {

constinit std::atomic<uint32_t> captures{0};

namespace {

struct Capture {};
constinit Capture under_way;
constinit Mutex<LockRank::kCaptures> mutex;  // keeps `captures` equal to the number of `origins`
constinit NoDestroy<PointerMap<Capture>> origins GUARDED_BY(mutex);

}  // namespace

bool CaptureBegins(uint64_t stream) {
  if (stream == 0) return false;
  static constinit ForkHandler fork_handler = {[] {
    mutex.ResetAfterFork();
    origins->ResetAfterFork();
  }};
  fork_handler.Install();
  MutexLock lock(mutex);
  if (origins->Find(stream) != nullptr) return false;
  // If there is no memory for it, it stays counted.
  origins->Insert(stream, &under_way);
  captures.fetch_add(1, std::memory_order_release);
  return true;
}

void CapturesMayBeUnseen() {
  static constinit std::atomic<bool> counted{false};
  if (!counted.exchange(true)) captures.fetch_add(1, std::memory_order_release);
}

void CaptureEnded(uint64_t stream) {
  if (stream == 0) return;
  MutexLock lock(mutex);
  if (origins->Remove(stream) != nullptr) captures.fetch_sub(1, std::memory_order_release);
}

}  // namespace xsched::shim
