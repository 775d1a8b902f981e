// Queues that wait for other queues, of any device. The awaited queue inherits the waiter's urgency and its
// right to run: a queue that is less urgent than the waiter must not hold it.
#pragma once

#include <span>

#include "base/array.h"
#include "base/pointer_map.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class Waits {
 public:
  Waits(const PointerMap<QueueRecord>& queues, const Array<DeviceRecord*>& devices)
      : queues_(queues), devices_(devices) {}

  // Devices between which queues wait are decided together. Others are not: somebody's wait that never ends
  // does not make every decision one about all devices. Makes all of them due if one is.
  void ChooseTogether() const;
  // Replaces what `waiter` waits for. False: it is the same as before.
  bool Set(QueueRecord& waiter, std::span<const Dependency> dependencies);

  // Does any queue wait, as far as is known? Mostly none does.
  bool any() const {
    for (const DeviceRecord* device : devices_) {
      if (device->waits || device->waits_across) return true;
    }
    return false;
  }
  // If so: in this order, in every decision, on the devices that are due:
  void ForgetPassed() const;
  void InheritPriorities(Granularity by) const;  // before the policy is asked
  void InheritRuns() const;                      // after that

 private:
  bool HasPassed(const Dependency& dependency) const;
  template <typename Inherit>
  void AlongWaits(Inherit&& inherit) const;

  const PointerMap<QueueRecord>& queues_;
  const Array<DeviceRecord*>& devices_;
};

}  // namespace xsched::sched
