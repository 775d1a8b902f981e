#include "shim/common/captures.h"

#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "shim/common/fork.h"

namespace xsched::shim {

constinit std::atomic<uint32_t> captures{0};

namespace {

struct Capture {};
constinit Capture under_way;
constinit NoDestroy<PointerMap<Capture>> origins;
constinit Mutex mutex;  // makes `captures` the number of `origins`

}  // namespace

void CaptureBegins(uint64_t stream) {
  if (stream == 0) return;
  static constinit ForkHandler fork_handler = {[] {
    mutex.ResetAfterFork();
    origins->ResetAfterFork();
  }};
  fork_handler.Install();
  MutexLock lock(mutex);
  const bool was_there = origins->Remove(stream) != nullptr;
  // Where there is no memory to remember it, it stays counted.
  origins->Insert(stream, &under_way);
  if (!was_there) captures.fetch_add(1, std::memory_order_release);
}

void CaptureEnded(uint64_t stream) {
  if (stream == 0) return;
  MutexLock lock(mutex);
  if (origins->Remove(stream) != nullptr) captures.fetch_sub(1, std::memory_order_release);
}

}  // namespace xsched::shim
