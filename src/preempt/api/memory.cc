#include "preempt/api/memory.h"

#include <pthread.h>

#include <atomic>
#include <optional>

#include "base/byte_size.h"
#include "base/env.h"
#include "base/fork_handler.h"
#include "base/log.h"
#include "preempt/api/process.h"

namespace xsched::preempt {
namespace {

enum class Known : int { kNothing, kNoLimit, kLimit };
std::atomic<Known> known{Known::kNothing};

MemoryLimit& Limit() { return ThisProcess().memory_limit; }

bool Open() {
  const char* text = EnvText("XSCHED_MEMORY");
  if (text == nullptr) return false;
  const std::optional<uint64_t> limit = ReadByteSize(text);
  if (limit) return Limit().Open(EnvText("XSCHED_MEMORY_ACCOUNT"), *limit);
  XSCHED_WARN("XSCHED_MEMORY=%s is no size such as 20GiB: memory has no limit", text);
  return false;
}

void Begin() {
  const bool limited = Open();
  static constinit ForkHandler handler = {[] { Limit().ForgetAfterFork(); }};
  if (limited) handler.Install();
  known.store(limited ? Known::kLimit : Known::kNoLimit, std::memory_order_release);
}

}  // namespace

bool MemoryIsLimited() {
  if (known.load(std::memory_order_acquire) == Known::kNothing) [[unlikely]] {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, Begin);
  }
  if (known.load(std::memory_order_acquire) == Known::kNoLimit) return false;
  if (Limit().HasSlot()) [[likely]]
    return true;
  known.store(Known::kNoLimit, std::memory_order_release);
  return false;
}

int LimitedDevice(XDevice device) { return Limit().Device(device); }
bool TakeMemory(int device, uint64_t bytes) { return Limit().Take(device, bytes); }
void CountMemory(int device, uint64_t bytes) { Limit().Count(device, bytes); }
void GiveMemoryBack(int device, uint64_t bytes) { Limit().GiveBack(device, bytes); }
MemoryState MemoryOf(int device) { return {Limit().limit(), Limit().UsedTogether(device)}; }

void ReportMemory() {
  if (MemoryIsLimited()) Limit().ReportAll();
}

}  // namespace xsched::preempt
