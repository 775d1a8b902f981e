#include "preempt/queue/hw_queue.h"

#include <stdio.h>
#include <string.h>

#include <new>
#include <utility>

namespace xsched::preempt {
namespace {

// Copies the fields that both this build and the HAL's know.
template <typename Ops>
Ops CopyOps(const Ops& ops) {
  Ops copy{};
  memcpy(static_cast<void*>(&copy), &ops, ops.size < sizeof copy ? ops.size : sizeof copy);
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

void HwQueue::Dispose() {
  if (ops.destroy != nullptr) ops.destroy(impl);
  delete this;
}

void HwCommand::Dispose() {
  if (ops.destroy != nullptr) ops.destroy(command);
  delete this;
}

// ---- queues ----

XResult HwQueues::Register(const XHwQueueOps& ops, void* impl, const XHwQueueInfo& info, HwQueueHandle* out) {
  if (info.key == 0) return kXSchedErrorInvalidValue;
  const XHwQueueOps known_ops = CopyOps(ops);
  if (!HasWhatItsGatingNeeds(known_ops)) return kXSchedErrorInvalidValue;
  const uint64_t map_key = MapKey(ops.platform, info.key);
  Ref<HwQueue> queue = Ref<HwQueue>::Adopt(new (std::nothrow) HwQueue);
  if (!queue) return kXSchedErrorUnknown;
  queue->impl = impl;
  queue->device = info.device;
  queue->key = info.key;
  queue->context = info.context;
  snprintf(queue->device_name, sizeof queue->device_name, "%s", info.device_name ? info.device_name : "");
  queue->ops = known_ops;
  // Until the queue is registered, `impl` belongs to the caller.
  auto destroy = std::exchange(queue->ops.destroy, nullptr);
  MutexLock lock(mutex_);
  if (const HwQueue* existing = by_key_.Find(map_key)) {
    *out = existing->handle;
    return kXSchedErrorNotAllowed;
  }
  queue->handle = handles_.Add(queue);
  if (queue->handle == 0) return kXSchedErrorUnknown;
  if (!by_key_.Insert(map_key, queue.get())) {
    handles_.Remove(queue->handle);
    return kXSchedErrorUnknown;
  }
  queue->ops.destroy = destroy;
  *out = queue->handle;
  return kXSchedSuccess;
}

XResult HwQueues::Unregister(HwQueueHandle handle) {
  Ref<HwQueue> queue;  // released after the lock, because its end may call the driver
  MutexLock lock(mutex_);
  queue = handles_.Remove(handle);
  if (!queue) return kXSchedErrorNotFound;
  by_key_.Remove(MapKey(queue->ops.platform, queue->key));
  return kXSchedSuccess;
}

HwQueueHandle HwQueues::Find(XPlatform platform, uint64_t key) {
  MutexLock lock(mutex_);
  const HwQueue* queue = by_key_.Find(MapKey(platform, key));
  return queue == nullptr ? 0 : queue->handle;
}

void HwQueues::ResetAfterFork() {
  mutex_.ResetAfterFork();
  handles_.ResetAfterFork();
  by_key_.ResetAfterFork();
}

// ---- commands ----

XResult HwCommands::Register(const XHwCommandOps& ops, void* command, HwCommandHandle* out) {
  if (ops.launch == nullptr) return kXSchedErrorInvalidValue;
  Ref<HwCommand> entry = Ref<HwCommand>::Adopt(new (std::nothrow) HwCommand);
  if (!entry) return kXSchedErrorUnknown;
  entry->command = command;
  *out = handles_.Add(entry);
  if (*out == 0) return kXSchedErrorUnknown;
  entry->handle = *out;
  entry->ops = CopyOps(ops);
  return kXSchedSuccess;
}

}  // namespace xsched::preempt
