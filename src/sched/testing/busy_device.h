// A device whose queues always have work while they are ready, in virtual time. Those that run at the same
// time divide it. The policy is asked again when it has asked for that.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "sched/testing/policy_device.h"

namespace xsched::sched {

class BusyDevice : public PolicyDevice {
 public:
  BusyDevice(const Policy& policy, std::initializer_list<QueueView> ready)
      : PolicyDevice(ready), policy_(policy) {}

  void Pass(Duration time) {
    const TimePoint end = now + time;
    while (now < end) {
      const TimePoint next = std::min(Decide(), end);
      const auto running =
          std::count_if(ready().begin(), ready().end(), [](const QueueView& queue) { return queue.run; });
      for (QueueView& queue : ready()) {
        if (queue.run && !queue.running) queue.running_since = now;
        if (queue.run) queue.service += (next - now) / running;
        queue.running = queue.run;
        queue.newly_ready = false;
      }
      now = next;
    }
  }
  TimePoint Decide() { return PolicyDevice::Decide(policy_, now); }

  TimePoint now = kNow;

 private:
  const Policy& policy_;
};

}  // namespace xsched::sched
