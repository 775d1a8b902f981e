#include "preempt/api/memory.h"

#include <pthread.h>

#include <atomic>
#include <optional>

#include "base/byte_size.h"
#include "base/env.h"
#include "base/fork_handler.h"
#include "base/log.h"
#include "preempt/api/process.h"
#include "preempt/api/settings.h"

namespace xsched::preempt {
namespace {

enum class Known : int { kNothing, kNotCounted, kCounted };
std::atomic<Known> known{Known::kNothing};
pthread_once_t once = PTHREAD_ONCE_INIT;

MemoryLimit& Limit() { return ThisProcess().memory_limit; }

std::optional<uint64_t> LimitOfProgram() {
  const char* text = EnvText("XSCHED_MEMORY");
  if (text == nullptr) return std::nullopt;
  const std::optional<uint64_t> limit = ReadByteSize(text);
  if (!limit)
    XSCHED_WARN("XSCHED_MEMORY=%s is no size such as 20GiB: the program has no limit of memory", text);
  return limit;
}

// False: nothing can ever limit this process.
bool Open() {
  if (const std::optional<uint64_t> limit = LimitOfProgram())
    return Limit().Open(EnvText("XSCHED_MEMORY_ACCOUNT"), *limit);
  return GetSettings().scheduler == kSchedulerGlobal && Limit().Open(nullptr, ipc::kNoMemoryLimit);
}

// Before any thread of this process counts: again in a forked child, whose slot is its parent's. False:
// nothing is counted.
bool OpenOrReopen() {
  if (!Limit().opened()) return Open();
  if (Limit().TakeOwnSlot()) return true;
  Limit().GiveUp();
  return false;
}

// The child connects by itself.
void ForgetAfterFork() {
  Limit().ForgetAfterFork();
  if (known.load(std::memory_order_relaxed) == Known::kNotCounted) return;
  known.store(Known::kNothing, std::memory_order_relaxed);
  once = PTHREAD_ONCE_INIT;
}

void Begin() {
  const bool counted = OpenOrReopen();
  static constinit ForkHandler handler = {ForgetAfterFork};
  if (counted) handler.Install();
  known.store(counted ? Known::kCounted : Known::kNotCounted, std::memory_order_release);
  // It may say that there is nothing to count.
  if (counted && GetSettings().scheduler == kSchedulerGlobal) ThisProcess().StartAgent();
}

}  // namespace

bool MemoryIsCounted() {
  if (known.load(std::memory_order_acquire) == Known::kNothing) [[unlikely]]
    pthread_once(&once, Begin);
  return MemoryWasCounted();
}

bool MemoryWasCounted() {
  if (known.load(std::memory_order_acquire) != Known::kCounted) return false;
  if (!Limit().IsPointless()) [[likely]]
    return true;
  Limit().GiveUp();
  known.store(Known::kNotCounted, std::memory_order_release);
  return false;
}

int LimitedDevice(XDevice device) { return Limit().Device(device); }
bool TakeMemory(int device, uint64_t bytes) { return Limit().Take(device, bytes); }
void CountMemory(int device, uint64_t bytes) { Limit().Count(device, bytes); }
void GiveMemoryBack(int device, uint64_t bytes) { Limit().GiveBack(device, bytes); }
MemoryState MemoryOf(int device) { return {Limit().limit(), Limit().Left(device)}; }

void ReportMemory() {
  if (MemoryWasCounted()) Limit().ReportAll();
}

}  // namespace xsched::preempt
