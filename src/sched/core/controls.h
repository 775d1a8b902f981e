// Carries out what was decided for a device: tells the clients, counts the queues' time, and goes on with
// their watches.
#pragma once

#include "sched/core/long_held.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class Controls {
 public:
  Controls(const SchedulerConfig& config, const LongHeld& long_held)
      : config_(config), long_held_(long_held) {}

  // Reports what has changed: holds first, so that who is let run finds the device free. Returns when to look
  // again: when a lingering queue will be idle, or a watch wants to be called.
  TimePoint Apply(const Policy& policy, DeviceRecord& device, TimePoint now, ControlSink& sink) const;

 private:
  TimePoint StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                      ControlSink& sink) const;

  const SchedulerConfig& config_;
  const LongHeld& long_held_;
};

}  // namespace xsched::sched
