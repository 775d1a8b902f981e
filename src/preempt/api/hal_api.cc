// What HALs call back (hal/contract.h): checks its arguments, then calls the classes.
#include "hal/contract.h"
#include "preempt/api/process.h"

using namespace xsched::preempt;

XResult HwQueueRegister(const XHwQueueOps* ops, void* hwq, const XHwQueueInfo* info, HwQueueHandle* out) {
  if (ops == nullptr || info == nullptr || out == nullptr) return kXSchedErrorInvalidValue;
  return ThisProcess().hw_queues.Register(*ops, hwq, *info, out);
}

HwQueueHandle HwQueueFind(XPlatform platform, uint64_t key) {
  return ThisProcess().hw_queues.Find(platform, key);
}

void* HwQueueImpl(HwQueueHandle handle, XPlatform platform) {
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(handle);
  return queue && queue->ops.platform == platform ? queue->impl : nullptr;
}

void HwQueueRetired(uint64_t ticket) {
  const Ticket reached = Ticket::Unpack(ticket);
  if (reached.queue >= xsched::ipc::kMaxQueues) return;
  ThisProcess().queues.At(reached.queue).state().MarkerReached(reached.number);
}

void ProcessOpsRegister(const XProcessOps* ops) { ThisProcess().slices.Use(*ops); }

XResult HwCommandRegister(const XHwCommandOps* ops, void* command, HwCommandHandle* out) {
  if (ops == nullptr || out == nullptr) return kXSchedErrorInvalidValue;
  return ThisProcess().hw_commands.Register(*ops, command, out);
}
