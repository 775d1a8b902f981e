// Decides on each device whether the watchdog lets every queue run, and for which queue. That is a queue of
// the device with an open window (watch.h), or a queue of another device with a *wide* window: one that acts
// on all devices, because a window on its own device did not help.
#pragma once

#include "base/array.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class Windows {
 public:
  explicit Windows(const Array<DeviceRecord*>& devices) : devices_(devices) {}

  // No queue of the device retires anything: opens a window for each queue that is asked for its progress.
  static void LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now);

  // In this order, in every decision, once it is known how urgent each queue is:
  // 1. Finds the most urgent queue of the device with an open window, and the most urgent one with a wide
  // one.
  static void Find(const PolicySetting& setting, DeviceRecord& device);
  // 2. Finds the most urgent queue of all devices with a wide window. False: it is the same as before.
  bool ChooseWide(const PolicySetting& setting);
  // 3. Sets the queue in whose window the device's queues run (DeviceRecord::released_for).
  void Release(const PolicySetting& setting, DeviceRecord& device) const;

 private:
  const Array<DeviceRecord*>& devices_;
  Claim wide_;
};

}  // namespace xsched::sched
