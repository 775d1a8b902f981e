// Decides on each device whether the watchdog lets every queue run, and for which queue. That is a queue of
// the device with an open window (watch.h), or a queue of another device with a *wide* window: one that acts
// on other devices as well, because a window on its own device did not help.
//
// Anybody can have a queue that retires nothing. So a wide window acts on a device for as long as it is open
// only in these cases:
//   - The queue's process, or one of its job, has work there: the queue may well wait for that.
//   - It takes the device from its own tenant only: all queues with the best claim there are of that tenant.
//   - The policy compares the queues of all devices, so the queue itself may be the one that others wait for.
// In other cases the queue may still wait for one there. All such windows together have a small part of the
// device's time: nobody's stalled queue ends the holds of others, and what they hold gets on.
#pragma once

#include "base/array.h"
#include "sched/core/queue_record.h"
#include "sched/core/turns.h"
#include "sched/core/wide_windows.h"

namespace xsched::sched {

class Windows {
 public:
  Windows(const Array<DeviceRecord*>& devices, const Turns& turns) : devices_(devices), turns_(turns) {}

  // No queue of the device retires anything: opens a window for each queue that is asked for its progress.
  static void LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now);

  // In this order, in every decision, once it is known how urgent each queue is:
  // 1. Finds the most urgent queue of the device with an open window, and those with a wide one.
  static void Find(const PolicySetting& setting, DeviceRecord& device);
  // 2. Gathers the wide ones of all devices. False: they are the same as before.
  bool CollectWide(const PolicySetting& setting);
  // 3. Sets the queue in whose window the device's queues run (DeviceRecord::released_for), and when to call
  // it again at the latest (DeviceRecord::release_at).
  void Release(const PolicySetting& setting, DeviceRecord& device, TimePoint now) const {
    device.released_for.valid = false;
    device.release_at = kNever;
    if (device.window.valid || wide_.any().valid) ReleaseFor(setting, device, now);
  }

  void JobChanged(ProcessId process) { changed_ |= wide_.OfProcess(process).valid; }
  void PolicyChanged() { changed_ = true; }

 private:
  void ReleaseFor(const PolicySetting& setting, DeviceRecord& device, TimePoint now) const;
  static void FindWide(const PolicySetting& setting, DeviceRecord& device);
  Claim Lasting(const PolicySetting& setting, const DeviceRecord& device, const TenantRecord* holder) const;

  const Array<DeviceRecord*>& devices_;
  const Turns& turns_;
  WideWindows wide_;
  bool changed_ = false;
};

}  // namespace xsched::sched
