// The C API of xsched/xqueue.h: checks its arguments, then calls the classes.
#include "xsched/xqueue.h"

#include <new>

#include "preempt/api/launch.h"
#include "preempt/api/process.h"

using namespace xsched::preempt;

namespace {

bool IsLevel(int64_t level) { return level > kPreemptLevelUnknown && level < kPreemptLevelMax; }

constexpr int64_t kSuspendFlags =
    kQueueSuspendFlagSyncHwQueue | kQueueSuspendFlagWaitAll | kQueueSuspendFlagWaitIdle;

// Everything submitted so far has been launched and has finished.
void WaitAll(XQueue& queue) {
  queue.worker().WaitLaunched();
  queue.WaitRetired(queue.issued());
}

struct CallbackCommand {
  LaunchCallback launch;
  void* data;
};

}  // namespace

XResult XQueueCreate(XQueueHandle* xq, HwQueueHandle hwq, int64_t level, int64_t flags) {
  if (xq == nullptr || !IsLevel(level)) return kXSchedErrorInvalidValue;
  if ((flags & ~int64_t{kQueueCreateFlagBlockingSubmit}) != 0) return kXSchedErrorInvalidValue;
  Ref<HwQueue> queue = HwQueues().Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  XQueueOptions options;
  options.level = static_cast<XPreemptLevel>(level);
  options.blocking_submit = (flags & kQueueCreateFlagBlockingSubmit) != 0;
  return ThisProcess().CreateQueue(queue, options, xq);
}

XResult XQueueDestroy(XQueueHandle xq) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue || !ThisProcess().queues.Destroy(xq)) return kXSchedErrorNotFound;
  // The HwQueue and the driver's queue are the program's to destroy from now on.
  ThisProcess().queues.AwaitOthers(*queue);
  return kXSchedSuccess;
}

XResult XQueueGet(XQueueHandle* xq, HwQueueHandle hwq) {
  if (xq == nullptr) return kXSchedErrorInvalidValue;
  Ref<HwQueue> queue = HwQueues().Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  XQueue* xqueue = queue->xqueue.load(std::memory_order_acquire);
  XQueueHandle handle = xqueue == nullptr ? 0 : xqueue->handle();
  if (handle == 0) return kXSchedErrorNotFound;
  *xq = handle;
  return kXSchedSuccess;
}

XResult XQueueSetPreemptLevel(XQueueHandle xq, int64_t level) {
  if (!IsLevel(level)) return kXSchedErrorInvalidValue;
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  if (level > queue->hwq().ops.max_level) return kXSchedErrorNotSupported;
  queue->MakePausable();
  queue->SetLevel(static_cast<XPreemptLevel>(level));
  ThisProcess().agent.ConfigChanged(*queue);
  return kXSchedSuccess;
}

XResult XQueueSetLaunchConfig(XQueueHandle xq, int64_t threshold, int64_t batch_size) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  LaunchConfig config = queue->config();
  if (threshold > 0) config.threshold = threshold;
  if (batch_size > 0) config.batch_size = batch_size;
  if (config.threshold < config.batch_size) return kXSchedErrorInvalidValue;
  queue->SetConfig(config);
  ThisProcess().agent.ConfigChanged(*queue);
  return kXSchedSuccess;
}

XResult XQueueSubmit(XQueueHandle xq, HwCommandHandle hw_cmd) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  Ref<HwCommand> command = HwCommands().Get(hw_cmd);
  if (queue && HwCommands().WasConsumed(hw_cmd)) return kXSchedErrorNotAllowed;
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->ops.platform != kPlatformUnknown && command->ops.platform != queue->hwq().ops.platform) {
    return kXSchedErrorInvalidValue;
  }
  XQueueHandle nowhere = 0;
  if (!command->submitted_to.compare_exchange_strong(nowhere, xq)) return kXSchedErrorNotAllowed;
  return queue->worker().Submit(*queue, command, queue->blocking_submit());
}

XResult XQueueWait(XQueueHandle xq, HwCommandHandle hw_cmd) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  Ref<HwCommand> command = HwCommands().Get(hw_cmd);
  if (queue && HwCommands().WasConsumed(hw_cmd)) return kXSchedSuccess;  // it has finished
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->submitted_to.load(std::memory_order_acquire) != xq) return kXSchedErrorNotAllowed;
  queue->worker().WaitLaunched(*command);
  if (command->dropped.load(std::memory_order_acquire)) return kXSchedErrorNotFound;
  queue->WaitRetired(command->number.load(std::memory_order_acquire));
  return kXSchedSuccess;
}

XResult XQueueWaitAll(XQueueHandle xq) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  WaitAll(*queue);
  return kXSchedSuccess;
}

XResult XQueueQuery(XQueueHandle xq, XQueueState* state) {
  if (state == nullptr) return kXSchedErrorInvalidValue;
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  queue->RequestProgress();
  *state = queue->Idle() && queue->worker().Empty() ? kQueueStateIdle : kQueueStateReady;
  return kXSchedSuccess;
}

XResult XQueueSuspend(XQueueHandle xq, int64_t flags) {
  if ((flags & ~kSuspendFlags) != 0) return kXSchedErrorInvalidValue;
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  if (queue->suspended()) return kXSchedSuccess;
  queue->MakePausable();
  if ((flags & kQueueSuspendFlagWaitAll) != 0) WaitAll(*queue);
  if ((flags & kQueueSuspendFlagWaitIdle) != 0) {
    while (!queue->Idle() || !queue->worker().Empty()) WaitAll(*queue);
  }
  ThisProcess().Suspend(*queue, true);
  queue->worker().WaitBetweenLaunches();
  if ((flags & kQueueSuspendFlagSyncHwQueue) != 0) queue->WaitInFlight();
  return kXSchedSuccess;
}

XResult XQueueResume(XQueueHandle xq, int64_t flags) {
  if ((flags & ~int64_t{kQueueResumeFlagDropCommands}) != 0) return kXSchedErrorInvalidValue;
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  if (!queue->suspended()) return kXSchedSuccess;
  if ((flags & kQueueResumeFlagDropCommands) != 0) queue->worker().Drop();
  ThisProcess().Suspend(*queue, false);
  ThisProcess().queues.FinishIfDrained(*queue);
  return kXSchedSuccess;
}

XResult XQueueProfileHwCommandCount(XQueueHandle xq, int64_t* count) {
  if (count == nullptr) return kXSchedErrorInvalidValue;
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  *count = static_cast<int64_t>(queue->submitted()) + queue->worker().waiting();
  return kXSchedSuccess;
}

XResult HwQueueDestroy(HwQueueHandle hwq) {
  Ref<HwQueue> queue = HwQueues().Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  // Its XQueue would be left without a queue.
  if (queue->xqueue.load(std::memory_order_acquire) != nullptr) return kXSchedErrorNotAllowed;
  return UnregisterHwQueue(hwq);
}

XResult HwQueueLaunch(HwQueueHandle hwq, HwCommandHandle hw_cmd) {
  Ref<HwQueue> queue = HwQueues().Get(hwq);
  Ref<HwCommand> command = HwCommands().Get(hw_cmd);
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->ops.platform != kPlatformUnknown && command->ops.platform != queue->ops.platform) {
    return kXSchedErrorInvalidValue;
  }
  ReentrancyGuard guard;
  return command->ops.launch(command->command, hwq);
}

XResult HwQueueSynchronize(HwQueueHandle hwq) {
  Ref<HwQueue> queue = HwQueues().Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  return queue->ops.synchronize(queue->impl);
}

XResult HwCommandCreateCallback(HwCommandHandle* hw_cmd, LaunchCallback launch, void* data) {
  if (hw_cmd == nullptr || launch == nullptr) return kXSchedErrorInvalidValue;
  auto* command = new (std::nothrow) CallbackCommand{launch, data};
  if (command == nullptr) return kXSchedErrorUnknown;
  XHwCommandOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformUnknown;
  ops.launch = [](void* self, HwQueueHandle queue) {
    auto* callback = static_cast<CallbackCommand*>(self);
    return callback->launch(queue, callback->data);
  };
  ops.destroy = [](void* self) { delete static_cast<CallbackCommand*>(self); };
  XResult result = HwCommandRegister(&ops, command, hw_cmd);
  if (result != kXSchedSuccess) delete command;
  return result;
}

XResult HwCommandDestroy(HwCommandHandle hw_cmd) {
  const bool known = HwCommands().Remove(hw_cmd) || HwCommands().WasConsumed(hw_cmd);
  return known ? kXSchedSuccess : kXSchedErrorNotFound;
}
