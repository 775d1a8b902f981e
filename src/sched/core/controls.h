// Applies a decision to a device: reports changes to the clients, accounts the queues' time, and steps their
// watches.
#pragma once

#include "sched/core/long_held.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class Controls {
 public:
  Controls(const SchedulerConfig& config, const LongHeld& long_held)
      : config_(config), long_held_(long_held) {}

  // Reports what has changed: holds first, so that queues which now run find the device free. Sets when the
  // watches must be stepped (DeviceRecord::watch_at and ask_at). Returns when to decide again otherwise: when
  // a lingering queue becomes idle, for instance.
  TimePoint Apply(const PolicySetting& setting, DeviceRecord& device, TimePoint now, ControlSink& sink) const;
  // Between two decisions: steps the watches of the queues that run. REQUIRES: no window is open, no queue of
  // another device is held for long, and no process is off the device.
  void StepWatches(DeviceRecord& device, TimePoint now, ControlSink& sink) const;

 private:
  // Most watches rest, in every decision.
  void StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now, ControlSink& sink) const {
    if (chance.watchable || !queue.watch.rests()) StepWatchThatIsAwake(queue, chance, now, sink);
  }
  void StepWatchThatIsAwake(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                            ControlSink& sink) const;
  static void BeginWatches(DeviceRecord& device);
  void EndWatches(DeviceRecord& device, TimePoint now) const;

  const SchedulerConfig& config_;
  const LongHeld& long_held_;
};

}  // namespace xsched::sched
