// The C API of xsched/xqueue.h: checks its arguments, then calls the classes.
#include "xsched/xqueue.h"

#include <atomic>
#include <chrono>
#include <new>

#include "base/clock.h"
#include "base/log.h"
#include "preempt/api/launch.h"
#include "preempt/api/pinned_queue.h"
#include "preempt/queue/reentrancy_guard.h"

using namespace xsched::preempt;

namespace {

constexpr std::chrono::microseconds kLookAgain{500};

bool IsLevel(int64_t level) { return level > kPreemptLevelUnknown && level < kPreemptLevelMax; }

// As in XSched 1.2, a level that the queue does not have is no error: it gets the best one below it.
XPreemptLevel BestLevel(int64_t wanted, const HwQueue& hwq) {
  const auto level = static_cast<XPreemptLevel>(wanted);
  if (level <= hwq.ops.max_level) return level;
  static constinit std::atomic<bool> warned{false};
  if (!warned.exchange(true, std::memory_order_relaxed)) {
    XSCHED_WARN("%s: this queue has no preemption level %d: using level %d", hwq.device_name, level,
                hwq.ops.max_level);
  }
  return hwq.ops.max_level;
}

// The handle of the queue's XQueue; 0: it has none.
XQueueHandle XQueueOf(const HwQueue& hwq) {
  XQueue* xqueue = hwq.xqueue.load(std::memory_order_acquire);
  return xqueue == nullptr ? 0 : xqueue->handle();
}

// The XQueue that the program or a shim has made: as in XSched 1.2, who makes another one gets it.
XResult Existing(const HwQueue& hwq, XQueueHandle* xq) {
  *xq = XQueueOf(hwq);
  return *xq != 0 ? kXSchedSuccess : kXSchedErrorNotAllowed;
}

XResult WaitRetired(XQueue& queue, uint64_t number) {
  return queue.flow().WaitRetired(number) ? kXSchedSuccess : kXSchedErrorNotAllowed;
}

// Waits until everything submitted so far has been launched and has finished. The worker would wait for its
// own launch.
XResult WaitAll(XQueue& queue) {
  if (queue.worker().IsThisThread()) return kXSchedErrorNotAllowed;
  queue.worker().WaitLaunched();
  return WaitRetired(queue, queue.issued());
}

// Likewise until the queue is idle, also if more is submitted meanwhile.
XResult WaitIdle(XQueue& queue) {
  for (;;) {
    if (const XResult result = WaitAll(queue); result != kXSchedSuccess) return result;
    if (queue.Idle() && queue.worker().Empty()) return kXSchedSuccess;
    // A launch that has begun may be held: until it returns, there is nothing to wait for.
    xsched::SleepFor(kLookAgain);
  }
}

struct CallbackCommand {
  LaunchCallback launch;
  void* data;
};

}  // namespace

XResult XQueueCreate(XQueueHandle* xq, HwQueueHandle hwq, int64_t level, int64_t flags) {
  if (xq == nullptr) return kXSchedErrorInvalidValue;
  *xq = 0;  // programs that do not check the result must not use a handle that they find here
  if (!IsLevel(level)) return kXSchedErrorInvalidValue;
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  XQueueOptions options;
  options.level = BestLevel(level, *queue);
  options.blocking_submit = (flags & kQueueCreateFlagBlockingSubmit) != 0;
  const XResult result = ThisProcess().CreateQueue(queue, options, xq);
  return result != kXSchedErrorNotAllowed ? result : Existing(*queue, xq);
}

XResult XQueueCreateAuto(XQueueHandle* xq, HwQueueHandle hwq) {
  if (xq == nullptr) return kXSchedErrorInvalidValue;
  *xq = 0;
  const XResult result = AutoXQueueCreate(hwq);
  if (result != kXSchedSuccess && result != kXSchedErrorNotAllowed) return result;
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
  return queue ? Existing(*queue, xq) : kXSchedErrorNotFound;
}

XResult XQueueDestroy(XQueueHandle xq) {
  const PinnedQueue queue(xq);
  if (!queue || !ThisProcess().queues.Destroy(xq)) return kXSchedErrorNotFound;
  XQueueTable& queues = ThisProcess().queues;
  // After this, the program may destroy the HwQueue and the driver's queue.
  queues.AwaitOthers(*queue);
  // In a callback of a launch, that launch would be waited for.
  if (!InsideXSched()) queues.AwaitLaunches(*queue);
  queues.ReportLast(*queue);
  return kXSchedSuccess;
}

XResult XQueueGet(XQueueHandle* xq, HwQueueHandle hwq) {
  if (xq == nullptr) return kXSchedErrorInvalidValue;
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  const XQueueHandle handle = XQueueOf(*queue);
  if (handle == 0) return kXSchedErrorNotFound;
  *xq = handle;
  return kXSchedSuccess;
}

XResult XQueueList(XQueueHandle* xqs, size_t capacity, size_t* count) {
  if (count == nullptr || (xqs == nullptr && capacity != 0)) return kXSchedErrorInvalidValue;
  const XQueueTable& queues = ThisProcess().queues;
  size_t found = 0;
  for (uint32_t index = 0; index < queues.end_of_used(); ++index) {
    const XQueueHandle handle = queues.HandleAt(index);
    if (handle == 0) continue;
    if (found < capacity) xqs[found] = handle;
    ++found;
  }
  *count = found;
  return kXSchedSuccess;
}

XResult XQueueSetPreemptLevel(XQueueHandle xq, XPreemptLevel level) {
  if (!IsLevel(level)) return kXSchedErrorInvalidValue;
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  queue->flow().MakePausable();
  queue->SetLevel(BestLevel(level, queue->hwq()));
  ThisProcess().agent.ConfigChanged(*queue);
  return kXSchedSuccess;
}

XResult XQueueGetPreemptLevel(XQueueHandle xq, XPreemptLevel* level) {
  if (level == nullptr) return kXSchedErrorInvalidValue;
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  *level = queue->level();
  return kXSchedSuccess;
}

XResult XQueueSetLaunchConfig(XQueueHandle xq, int64_t threshold, int64_t batch_size) {
  const PinnedQueue queue(xq);
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
  const PinnedQueue queue(xq);
  Ref<HwCommand> command = ThisProcess().hw_commands.Get(hw_cmd);
  if (queue && ThisProcess().hw_commands.WasConsumed(hw_cmd)) return kXSchedErrorNotAllowed;
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->ops.platform != kPlatformUnknown && command->ops.platform != queue->hwq().ops.platform) {
    return kXSchedErrorInvalidValue;
  }
  if (!command->Claim(xq)) return kXSchedErrorNotAllowed;
  return queue->worker().Submit(*queue, command, queue->blocking_submit());
}

XResult XQueueWait(XQueueHandle xq, HwCommandHandle hw_cmd) {
  const PinnedQueue queue(xq);
  Ref<HwCommand> command = ThisProcess().hw_commands.Get(hw_cmd);
  if (queue && ThisProcess().hw_commands.WasConsumed(hw_cmd)) return kXSchedSuccess;  // it has finished
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->submitted_to.load(std::memory_order_acquire) != xq) return kXSchedErrorNotAllowed;
  const bool is_launched = command->number.load(std::memory_order_acquire) != 0;
  if (!is_launched && queue->worker().IsThisThread()) return kXSchedErrorNotAllowed;
  queue->worker().WaitLaunched(*command);
  if (command->dropped.load(std::memory_order_acquire)) return kXSchedErrorNotFound;
  return WaitRetired(*queue, command->number.load(std::memory_order_acquire));
}

XResult XQueueWaitAll(XQueueHandle xq) {
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  return WaitAll(*queue);
}

XResult XQueueQuery(XQueueHandle xq, XQueueState* state) {
  if (state == nullptr) return kXSchedErrorInvalidValue;
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  queue->flow().RequestProgress();
  *state = queue->flow().Finished() && queue->worker().Empty() ? kQueueStateIdle : kQueueStateReady;
  ThisProcess().queues.FinishIfDrained(*queue);
  return kXSchedSuccess;
}

XResult XQueueSuspend(XQueueHandle xq, int64_t flags) {
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  const bool in_own_launch = queue->worker().IsThisThread();
  const bool sync = (flags & kQueueSuspendFlagSyncHwQueue) != 0;
  if (in_own_launch && sync) return kXSchedErrorNotAllowed;
  const bool was_suspended = queue->suspended();
  if (was_suspended) {
    if (!sync) return kXSchedSuccess;
    queue->ApplyLevels();  // the thread that has suspended it may be about to
  } else {
    queue->flow().MakePausable();
    XResult awaited = kXSchedSuccess;
    if ((flags & kQueueSuspendFlagWaitAll) != 0) awaited = WaitAll(*queue);
    if ((flags & kQueueSuspendFlagWaitIdle) != 0) awaited = WaitIdle(*queue);
    if (awaited != kXSchedSuccess) return awaited;
    ThisProcess().Suspend(*queue, true);
  }
  if (!in_own_launch) queue->worker().WaitBetweenLaunches();
  if (!sync || queue->WaitInFlight()) return kXSchedSuccess;
  if (!was_suspended) XQueueResume(xq, kQueueResumeFlagNone);
  return kXSchedErrorNotAllowed;
}

XResult XQueueResume(XQueueHandle xq, int64_t flags) {
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  if (!queue->suspended()) return kXSchedSuccess;
  if ((flags & kQueueResumeFlagDropCommands) != 0) queue->worker().Drop();
  ThisProcess().Suspend(*queue, false);
  ThisProcess().queues.FinishIfDrained(*queue);
  return kXSchedSuccess;
}

XResult XQueueProfileHwCommandCount(XQueueHandle xq, int64_t* count) {
  if (count == nullptr) return kXSchedErrorInvalidValue;
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  *count = static_cast<int64_t>(queue->submitted()) + queue->worker().waiting();
  return kXSchedSuccess;
}

XResult HwQueueDestroy(HwQueueHandle hwq) {
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
  if (!queue) return kXSchedErrorNotFound;
  // Its XQueue would have no hardware queue any more.
  if (queue->xqueue.load(std::memory_order_acquire) != nullptr) return kXSchedErrorNotAllowed;
  return ThisProcess().hw_queues.Unregister(hwq);
}

XResult HwQueueLaunch(HwQueueHandle hwq, HwCommandHandle hw_cmd) {
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
  Ref<HwCommand> command = ThisProcess().hw_commands.Get(hw_cmd);
  if (!queue || !command) return kXSchedErrorNotFound;
  if (command->ops.platform != kPlatformUnknown && command->ops.platform != queue->ops.platform) {
    return kXSchedErrorInvalidValue;
  }
  if (!command->kept.load(std::memory_order_relaxed)) {
    if (!command->Claim(hwq)) return kXSchedErrorNotAllowed;
    ThisProcess().hw_commands.Consume(hw_cmd);
  }
  ReentrancyGuard guard;
  return command->ops.launch(command->command, hwq);
}

XResult HwQueueSynchronize(HwQueueHandle hwq) {
  Ref<HwQueue> queue = ThisProcess().hw_queues.Get(hwq);
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

XResult HwCommandKeep(HwCommandHandle hw_cmd) {
  Ref<HwCommand> command = ThisProcess().hw_commands.Get(hw_cmd);
  if (!command)
    return ThisProcess().hw_commands.WasConsumed(hw_cmd) ? kXSchedErrorNotAllowed : kXSchedErrorNotFound;
  command->kept.store(true, std::memory_order_relaxed);
  return kXSchedSuccess;
}

XResult HwCommandDestroy(HwCommandHandle hw_cmd) {
  const bool known =
      ThisProcess().hw_commands.Remove(hw_cmd) || ThisProcess().hw_commands.WasConsumed(hw_cmd);
  return known ? kXSchedSuccess : kXSchedErrorNotFound;
}
