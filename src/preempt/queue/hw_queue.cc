#include "preempt/queue/hw_queue.h"

#include <stdio.h>
#include <string.h>

#include <new>
#include <utility>

#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace xsched::preempt {
namespace {

constinit NoDestroy<HwQueueTable> hw_queues;
constinit NoDestroy<HwCommandTable> hw_commands;

// Drivers' handles are addresses, so platforms cannot collide but for small made-up keys: mix the platform
// in.
uint64_t MapKey(XPlatform platform, uint64_t key) { return key ^ static_cast<uint64_t>(platform) << 56; }
// What is in `by_key` is in `hw_queues`, and so alive, while this is held.
constinit Mutex registry;
constinit NoDestroy<PointerMap<HwQueue>> by_key;

// Copies what this build and the HAL's both know.
template <typename Ops>
Ops CopyOps(const Ops* ops) {
  Ops copy{};
  memcpy(static_cast<void*>(&copy), ops, ops->size < sizeof copy ? ops->size : sizeof copy);
  return copy;
}

bool HasWhatItsGatingNeeds(const XHwQueueOps& ops) {
  switch (ops.gating) {
    case kGatingCallerWaits:
      return true;
    case kGatingHostGates:
      return ops.append_gate != nullptr && ops.open_gate != nullptr && ops.append_marker != nullptr;
    case kGatingDeviceGates:
      return ops.append_device_gate != nullptr && ops.append_progress != nullptr;
  }
  return false;
}

}  // namespace

HwQueueTable& HwQueues() { return *hw_queues; }
HwCommandTable& HwCommands() { return *hw_commands; }

void HwQueue::Dispose() {
  if (ops.destroy != nullptr) ops.destroy(impl);
  delete this;
}

void HwCommand::Dispose() {
  if (ops.destroy != nullptr) ops.destroy(command);
  delete this;
}

HwQueueHandle FindHwQueue(XPlatform platform, uint64_t key) {
  MutexLock lock(registry);
  HwQueue* queue = by_key->Find(MapKey(platform, key));
  return queue == nullptr ? 0 : queue->handle;
}

XResult UnregisterHwQueue(HwQueueHandle handle) {
  Ref<HwQueue> queue;  // let go after the lock: its end may call the driver
  MutexLock lock(registry);
  queue = hw_queues->Remove(handle);
  if (!queue) return kXSchedErrorNotFound;
  by_key->Remove(MapKey(queue->ops.platform, queue->key));
  return kXSchedSuccess;
}

void ResetHwQueuesAfterFork() {
  registry.ResetAfterFork();
  hw_queues->ResetAfterFork();
  hw_commands->ResetAfterFork();
  by_key->ResetAfterFork();
}

}  // namespace xsched::preempt

using xsched::preempt::HwCommand;
using xsched::preempt::HwQueue;
using xsched::preempt::Ref;

XResult HwQueueRegister(const XHwQueueOps* ops, void* impl, const XHwQueueInfo* info, HwQueueHandle* out) {
  using namespace xsched::preempt;
  if (ops == nullptr || info == nullptr || out == nullptr || info->key == 0) return kXSchedErrorInvalidValue;
  const XHwQueueOps known_ops = CopyOps(ops);
  if (!HasWhatItsGatingNeeds(known_ops)) return kXSchedErrorInvalidValue;
  const uint64_t map_key = MapKey(ops->platform, info->key);
  Ref<HwQueue> queue = Ref<HwQueue>::Adopt(new (std::nothrow) HwQueue);
  if (!queue) return kXSchedErrorUnknown;
  queue->impl = impl;
  queue->device = info->device;
  queue->key = info->key;
  queue->context = info->context;
  snprintf(queue->device_name, sizeof queue->device_name, "%s", info->device_name ? info->device_name : "");
  queue->ops = known_ops;
  // Until it is registered, `impl` is the caller's.
  auto destroy = std::exchange(queue->ops.destroy, nullptr);
  xsched::MutexLock lock(registry);
  if (const HwQueue* existing = by_key->Find(map_key)) {
    *out = existing->handle;
    return kXSchedErrorNotAllowed;
  }
  queue->handle = HwQueues().Add(queue);
  if (queue->handle == 0) return kXSchedErrorUnknown;
  if (!by_key->Insert(map_key, queue.get())) {
    HwQueues().Remove(queue->handle);
    return kXSchedErrorUnknown;
  }
  queue->ops.destroy = destroy;
  *out = queue->handle;
  return kXSchedSuccess;
}

void* HwQueueImpl(HwQueueHandle handle, XPlatform platform) {
  Ref<HwQueue> queue = xsched::preempt::HwQueues().Get(handle);
  return queue && queue->ops.platform == platform ? queue->impl : nullptr;
}

XResult HwCommandRegister(const XHwCommandOps* ops, void* command, HwCommandHandle* out) {
  using namespace xsched::preempt;
  if (ops == nullptr || ops->launch == nullptr || out == nullptr) return kXSchedErrorInvalidValue;
  Ref<HwCommand> entry = Ref<HwCommand>::Adopt(new (std::nothrow) HwCommand);
  if (!entry) return kXSchedErrorUnknown;
  entry->command = command;
  *out = HwCommands().Add(entry);
  if (*out == 0) return kXSchedErrorUnknown;
  entry->handle = *out;
  entry->ops = CopyOps(ops);
  return kXSchedSuccess;
}

HwQueueHandle HwQueueFind(XPlatform platform, uint64_t key) {
  return xsched::preempt::FindHwQueue(platform, key);
}
