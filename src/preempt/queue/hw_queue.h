// Hardware queues and commands as HALs register them, behind checked handles.
#pragma once

#include <atomic>

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
  // Where it was submitted, and as which number; 0: not launched yet. Written by the submit worker, read by
  // XQueueWait.
  std::atomic<XQueueHandle> submitted_to{0};
  std::atomic<uint64_t> number{0};
  std::atomic<bool> dropped{false};

  void Dispose();
};

using HwQueueTable = HandleTable<HwQueue, 2>;
using HwCommandTable = HandleTable<HwCommand, 3>;

HwQueueTable& HwQueues();
HwCommandTable& HwCommands();
// The handle of the hardware queue registered for the driver's `key`; 0: none.
HwQueueHandle FindHwQueue(XPlatform platform, uint64_t key);
// Takes the queue's handle and key away; it is destroyed when the last user lets go.
XResult UnregisterHwQueue(HwQueueHandle handle);
void ResetHwQueuesAfterFork();

}  // namespace xsched::preempt
