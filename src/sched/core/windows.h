// For whom the watchdog lets everybody run, on each device: for a queue of the device whose window is open
// (watch.h), or for one of another device that lends its urgency, since a window of its own device did not
// help.
#pragma once

#include "base/array.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class Windows {
 public:
  explicit Windows(const Array<DeviceRecord*>& devices) : devices_(devices) {}

  // No queue of the device retires anything: opens a window for each that runs.
  static void LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now);

  // In this order, in every decision, once it is known how urgent each queue is:
  // 1. Finds the most urgent queue of the device with an open window, and of those that lend.
  static void Find(const Policy& policy, DeviceRecord& device);
  // 2. Finds the most urgent queue of all devices that lends. False: it is the same as before.
  bool ChooseLender(const Policy& policy);
  // 3. Sets for whom everybody runs on the device (DeviceRecord::released_for).
  void Release(const Policy& policy, DeviceRecord& device) const;

 private:
  const Array<DeviceRecord*>& devices_;
  Claim lender_;
};

}  // namespace xsched::sched
