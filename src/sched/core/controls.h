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

  // Reports what has changed: holds first, so that queues which now run find the device free. Returns when to
  // decide again: when a lingering queue becomes idle, or when a watch must be stepped.
  TimePoint Apply(const PolicySetting& setting, DeviceRecord& device, TimePoint now, ControlSink& sink) const;

 private:
  TimePoint StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                      ControlSink& sink) const;

  const SchedulerConfig& config_;
  const LongHeld& long_held_;
};

}  // namespace xsched::sched
