#include "preempt/api/memory.h"

#include <pthread.h>

#include <atomic>

#include "base/byte_size.h"
#include "base/env.h"
#include "base/fork_handler.h"
#include "base/log.h"
#include "base/no_destroy.h"
#include "ipc/memory_account.h"
#include "preempt/api/process.h"

namespace xsched::preempt {
namespace {

constinit NoDestroy<ipc::MemoryAccount> account;

enum class Limit : int { kUnknown, kNone, kSome };
std::atomic<Limit> state{Limit::kUnknown};
// The child of a fork has its parent's slot until its first allocation.
std::atomic<bool> has_parents_slot{false};

bool OpenAccount(uint64_t limit) {
  const char* path = EnvText("XSCHED_MEMORY_ACCOUNT");
  if (path != nullptr) {
    Result<> shared = account->Open(path, limit);
    if (shared) return true;
    XSCHED_WARN("%s: %s; this process has the limit for itself", path, shared.error().text());
  }
  Result<> own = account->Open(nullptr, limit);
  if (!own) XSCHED_WARN("XSCHED_MEMORY: %s; there is no limit", own.error().text());
  return static_cast<bool>(own);
}

void Begin() {
  const char* text = EnvText("XSCHED_MEMORY");
  Limit found = Limit::kNone;
  if (text != nullptr) {
    const std::optional<uint64_t> limit = ReadByteSize(text);
    if (!limit) {
      XSCHED_WARN("XSCHED_MEMORY=%s is no size such as 20GiB: there is no limit", text);
    } else if (OpenAccount(*limit)) {
      found = Limit::kSome;
    }
  }
  if (found == Limit::kSome) {
    static constinit ForkHandler handler = {[] { has_parents_slot.store(true, std::memory_order_relaxed); }};
    handler.Install();
  }
  state.store(found, std::memory_order_release);
}

// A forked child may not use its parent's devices, so it has nothing of the parent's memory.
void LeaveParentsSlot() {
  if (!has_parents_slot.exchange(false)) return;
  if (Result<> taken = account->Reopen(); !taken) {
    XSCHED_WARN("%s: there is no limit", taken.error().text());
    state.store(Limit::kNone, std::memory_order_release);
  }
}

void Report(int device) {
  ThisProcess().memory.ReportMemory(device, account->device(device), account->limit(), account->Own(device));
}

}  // namespace

bool MemoryIsLimited() {
  const Limit known = state.load(std::memory_order_acquire);
  if (known != Limit::kUnknown) [[likely]] {
    if (known == Limit::kNone) return false;
    if (has_parents_slot.load(std::memory_order_relaxed)) [[unlikely]]
      LeaveParentsSlot();
    return state.load(std::memory_order_relaxed) == Limit::kSome;
  }
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, Begin);
  return state.load(std::memory_order_acquire) == Limit::kSome;
}

int LimitedDevice(XDevice device) { return account->Device(device); }

bool TakeMemory(int device, uint64_t bytes) {
  const bool taken = account->Take(device, bytes);
  if (taken) Report(device);
  return taken;
}

void CountMemory(int device, uint64_t bytes) {
  account->Count(device, bytes);
  Report(device);
}

void GiveMemoryBack(int device, uint64_t bytes) {
  account->GiveBack(device, bytes);
  Report(device);
}

MemoryState MemoryOf(int device) {
  account->DropEnded();
  return {account->limit(), account->Together(device)};
}

void ReportMemory() {
  if (!MemoryIsLimited()) return;
  for (int device = 0; device < ipc::kMaxMemoryDevices && account->device(device) != 0; ++device) Report(device);
}

}  // namespace xsched::preempt
