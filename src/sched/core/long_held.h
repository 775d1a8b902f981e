// The devices where a queue has been held for long. A queue of another device may wait for the held one in a
// way that the scheduler cannot see.
#pragma once

#include <algorithm>

#include "base/array.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class LongHeld {
 public:
  // When a queue that is held since `held_since` counts as held for long.
  static TimePoint From(TimePoint held_since);

  explicit LongHeld(const Array<DeviceRecord*>& devices) : devices_(devices) {}

  // Makes room for `devices` devices. False: out of memory.
  bool Reserve(size_t devices) { return leaders_.Reserve(devices) && found_.Reserve(devices); }
  // Finds these devices anew. False: nothing has changed. With one device there are none: nobody can wait for
  // a queue of another one.
  bool Find(TimePoint now) { return (devices_.size() > 1 || any()) && FindAnew(now); }
  // True if there are any.
  bool any() const { return !leaders_.empty(); }
  // Since when a queue is held for long on another device, if this queue may wait for it. That is so if no
  // queue that runs there has a better claim than this one. kNever: there is none.
  TimePoint ElsewhereSince(const PolicySetting& setting, const QueueRecord& queue) const {
    return any() ? Search(setting, queue) : kNever;
  }
  // The same, also where a queue that runs there has a better claim. It may have one only for a moment.
  TimePoint AnywhereElseSince(const QueueRecord& queue) const {
    TimePoint since = kNever;
    for (const Claim& leader : leaders_) {
      if (leader.device != queue.device) since = std::min(since, leader.device->held_since);
    }
    return since;
  }

 private:
  bool FindAnew(TimePoint now);
  TimePoint Search(const PolicySetting& setting, const QueueRecord& queue) const;

  const Array<DeviceRecord*>& devices_;
  // The best claims on these devices, not valid where no queue runs. The device with the longest hold is
  // first.
  Array<Claim> leaders_;
  Array<Claim> found_;  // kept, so that its memory is reused
};

}  // namespace xsched::sched
