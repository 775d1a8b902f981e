#include "xsched/soft/hal.h"

#include <stdio.h>

#include <new>

#include "hal/contract.h"
#include "hal/soft/soft_device.h"
#include "preempt/api/launch.h"

using xsched::soft::Item;
using xsched::soft::SoftDevice;
using xsched::soft::SoftQueue;

namespace {

// The software device is none of XSched 1.2's platforms.
constexpr XPlatform kPlatformSoft = kPlatformUnknown;
constexpr XDeviceType kSoftDeviceType = kDeviceTypeASIC;

SoftQueue& Queue(void* hwq) { return *static_cast<SoftQueue*>(hwq); }
uint64_t KeyOf(const SoftQueue* queue) { return reinterpret_cast<uint64_t>(queue); }

XHwQueueOps MakeOps(XPreemptLevel max_level) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformSoft;
  ops.max_level = max_level;
  ops.gating = kGatingHostGates;
  ops.append_gate = [](void* hwq, uint64_t* gate) {
    return Queue(hwq).device->AppendGate(Queue(hwq), gate) ? kXSchedSuccess : kXSchedErrorUnknown;
  };
  ops.open_gate = [](void* hwq, uint64_t gate) {
    Queue(hwq).device->OpenGate(Queue(hwq), gate);
    return kXSchedSuccess;
  };
  ops.append_marker = [](void* hwq, uint64_t ticket) {
    bool appended =
        Queue(hwq).device->Append(Queue(hwq), Item{Item::kMarker, 0, {}, ticket, nullptr, nullptr});
    return appended ? kXSchedSuccess : kXSchedErrorUnknown;
  };
  ops.synchronize = [](void* hwq) {
    Queue(hwq).device->Synchronize(Queue(hwq));
    return kXSchedSuccess;
  };
  ops.destroy = [](void* hwq) { Queue(hwq).device->DestroyQueue(&Queue(hwq)); };
  if (max_level >= kPreemptLevelDeactivate) {
    ops.deactivate = [](void* hwq) {
      Queue(hwq).device->SetDeactivated(Queue(hwq), true);
      return kXSchedSuccess;
    };
    ops.reactivate = [](void* hwq) {
      Queue(hwq).device->SetDeactivated(Queue(hwq), false);
      return kXSchedSuccess;
    };
  }
  if (max_level >= kPreemptLevelInterrupt) {
    ops.interrupt = [](void* hwq) {
      Queue(hwq).device->SetInterrupted(Queue(hwq), true);
      return kXSchedSuccess;
    };
    ops.restore = [](void* hwq) {
      Queue(hwq).device->SetInterrupted(Queue(hwq), false);
      return kXSchedSuccess;
    };
  }
  return ops;
}

struct SoftCommand {
  xsched::Duration duration;
};

bool AppendCommand(SoftQueue& queue, xsched::Duration duration, void (*done)(void*), void* data) {
  return queue.device->Append(queue, Item{Item::kCommand, 0, duration, 0, done, data});
}

}  // namespace

XResult SoftQueueCreate(HwQueueHandle* hwq, XDeviceId device_id, XPreemptLevel max_level) {
  if (hwq == nullptr || max_level <= kPreemptLevelUnknown || max_level >= kPreemptLevelMax) {
    return kXSchedErrorInvalidValue;
  }
  SoftDevice* device = SoftDevice::Get(device_id);
  SoftQueue* queue = device == nullptr ? nullptr : device->MakeQueue();
  if (queue == nullptr) return kXSchedErrorUnknown;
  char name[32];
  snprintf(name, sizeof name, "software device %u", device_id);
  XHwQueueOps ops = MakeOps(max_level);
  XHwQueueInfo info{uint64_t{kSoftDeviceType} << 32 | device_id, name, KeyOf(queue), 0};
  XResult result = HwQueueRegister(&ops, queue, &info, hwq);
  if (result != kXSchedSuccess) device->DestroyQueue(queue);
  return result;
}

XResult SoftLaunch(HwQueueHandle hwq, int64_t duration_us, void (*done)(void*), void* data) {
  if (duration_us < 0) return kXSchedErrorInvalidValue;
  auto* queue = static_cast<SoftQueue*>(HwQueueImpl(hwq, kPlatformSoft));
  if (queue == nullptr) return kXSchedErrorNotFound;
  xsched::preempt::LaunchScope launch(
      xsched::preempt::InsideXSched() ? nullptr : xsched::preempt::FindXQueue(kPlatformSoft, KeyOf(queue)));
  bool launched = AppendCommand(*queue, std::chrono::microseconds(duration_us), done, data);
  launch.Finish(launched);
  return launched ? kXSchedSuccess : kXSchedErrorUnknown;
}

XResult SoftSynchronize(HwQueueHandle hwq) {
  auto* queue = static_cast<SoftQueue*>(HwQueueImpl(hwq, kPlatformSoft));
  if (queue == nullptr) return kXSchedErrorNotFound;
  xsched::preempt::XQueue* xqueue = xsched::preempt::FindXQueue(kPlatformSoft, KeyOf(queue));
  uint64_t newest = xqueue == nullptr ? 0 : xsched::preempt::SubmittedNow(xqueue);
  queue->device->Drain(*queue);
  if (xqueue != nullptr) xsched::preempt::RetiredUpTo(xqueue, newest);
  return kXSchedSuccess;
}

XResult SoftCommandCreate(HwCommandHandle* hw_cmd, int64_t duration_us) {
  if (hw_cmd == nullptr || duration_us < 0) return kXSchedErrorInvalidValue;
  auto* command = new (std::nothrow) SoftCommand{std::chrono::microseconds(duration_us)};
  if (command == nullptr) return kXSchedErrorUnknown;
  XHwCommandOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformSoft;
  ops.launch = [](void* self, HwQueueHandle target) {
    auto* queue = static_cast<SoftQueue*>(HwQueueImpl(target, kPlatformSoft));
    if (queue == nullptr) return kXSchedErrorNotFound;
    bool launched = AppendCommand(*queue, static_cast<SoftCommand*>(self)->duration, nullptr, nullptr);
    return launched ? kXSchedSuccess : kXSchedErrorUnknown;
  };
  ops.destroy = [](void* self) { delete static_cast<SoftCommand*>(self); };
  XResult result = HwCommandRegister(&ops, command, hw_cmd);
  if (result != kXSchedSuccess) delete command;
  return result;
}

XResult SoftQueueReport(HwQueueHandle hwq, uint64_t* finished, uint64_t* busy_ns) {
  auto* queue = static_cast<SoftQueue*>(HwQueueImpl(hwq, kPlatformSoft));
  if (queue == nullptr) return kXSchedErrorNotFound;
  queue->device->Report(*queue, finished, busy_ns);
  return kXSchedSuccess;
}
