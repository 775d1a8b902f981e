// The hardware queues and commands that HALs register, with checked handles.
#pragma once

#include <atomic>

#include "base/mutex.h"
#include "base/pointer_map.h"
#include "hal/contract.h"
#include "preempt/queue/ref.h"

namespace xsched::preempt {

class XQueue;

struct HwQueue {
  std::atomic<uint32_t> references{1};
  XHwQueueOps ops{};
  void* impl = nullptr;
  XDevice device = 0;
  uint64_t key = 0;
  uint64_t context = 0;
  char device_name[96] = "";
  HwQueueHandle handle = 0;
  std::atomic<XQueue*> xqueue{nullptr};

  void Dispose();  // calls ops.destroy and frees this
};

struct HwCommand {
  std::atomic<uint32_t> references{1};
  XHwCommandOps ops{};
  void* command = nullptr;
  HwCommandHandle handle = 0;
  // The queue on which it was submitted, and its number; 0: not launched yet. Written by the submit worker,
  // read by XQueueWait. For HwQueueLaunch: the hardware queue.
  std::atomic<XQueueHandle> submitted_to{0};
  std::atomic<uint64_t> number{0};
  std::atomic<bool> dropped{false};
  // HwCommandKeep: the program destroys it. False: it is destroyed after its launch.
  std::atomic<bool> kept{false};

  // Takes the command for `queue`. False: another queue has it, or had it.
  bool Claim(uint64_t queue) {
    XQueueHandle nowhere = 0;
    return submitted_to.compare_exchange_strong(nowhere, queue);
  }

  void Dispose();
};

// What tables know a hardware queue by. Drivers' handles are addresses, so those of two platforms never
// collide. Small invented keys might, so the platform is mixed in.
constexpr uint64_t MapKey(XPlatform platform, uint64_t key) {
  return key ^ static_cast<uint64_t>(platform) << 56;
}

// The process's hardware queues, by handle and by the driver's key. Thread-safe.
class HwQueues {
 public:
  // As HwQueueRegister (hal/contract.h).
  XResult Register(const XHwQueueOps& ops, void* impl, const XHwQueueInfo& info, HwQueueHandle* out)
      EXCLUDES(mutex_);
  // Removes the queue's handle and key. The queue is destroyed when the last user releases it.
  XResult Unregister(HwQueueHandle handle) EXCLUDES(mutex_);
  Ref<HwQueue> Get(HwQueueHandle handle) { return handles_.Get(handle); }
  // The handle of the queue registered for the driver's `key`; 0: none.
  HwQueueHandle Find(XPlatform platform, uint64_t key) EXCLUDES(mutex_);

  void ResetAfterFork();

 private:
  Mutex<LockRank::kHwQueueRegistry> mutex_;
  HandleTable<HwQueue, 2> handles_;
  // While the lock is held, every queue in `by_key_` is also in `handles_`, and so alive.
  PointerMap<HwQueue> by_key_ GUARDED_BY(mutex_);
};

// The process's commands for XQueueSubmit and HwQueueLaunch, by handle. Thread-safe.
class HwCommands {
 public:
  // As HwCommandRegister (hal/contract.h).
  XResult Register(const XHwCommandOps& ops, void* command, HwCommandHandle* out);
  Ref<HwCommand> Get(HwCommandHandle handle) { return handles_.Get(handle); }
  // The program destroys its command. False: there is none.
  bool Remove(HwCommandHandle handle) { return static_cast<bool>(handles_.Remove(handle)); }
  // The command has finished. Programs need not destroy it, and may still wait for it or destroy it.
  void Consume(HwCommandHandle handle) { handles_.Consume(handle); }
  bool WasConsumed(HwCommandHandle handle) { return handles_.WasConsumed(handle); }

  void ResetAfterFork() { handles_.ResetAfterFork(); }

 private:
  HandleTable<HwCommand, 3> handles_;
};

}  // namespace xsched::preempt
