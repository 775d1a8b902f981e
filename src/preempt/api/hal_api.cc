// What HALs call back (hal/contract.h). Hardware queues and commands are registered in queue/hw_queue.cc.
#include "hal/contract.h"
#include "preempt/api/process.h"

using namespace xsched::preempt;

void HwQueueRetired(uint64_t ticket) {
  const uint32_t index = QueueState::IndexOf(ticket);
  if (index >= xsched::ipc::kMaxQueues) return;
  ThisProcess().queues.At(index).MarkerReached(QueueState::NumberOf(ticket));
}

void ProcessOpsRegister(const XProcessOps* ops) { ThisProcess().slices.Use(*ops); }
