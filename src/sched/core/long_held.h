// The devices where a queue has been held for long. A queue of another device may wait for one that is held
// there, in a way that the scheduler cannot see.
#pragma once

#include "base/array.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {

class LongHeld {
 public:
  // When a queue that has been held since then counts.
  static TimePoint From(TimePoint held_since);

  explicit LongHeld(const Array<DeviceRecord*>& devices) : devices_(devices) {}

  // Makes room for so many devices. False: out of memory.
  bool Reserve(size_t devices) { return leaders_.Reserve(devices) && found_.Reserve(devices); }
  // Looks at all devices. False: nothing has changed.
  bool Find(TimePoint now);
  // Since when a queue has been held on another device that this one may wait for: whoever runs there has no
  // better claim. kNever: none is.
  TimePoint ElsewhereSince(const Policy& policy, const QueueRecord& queue) const {
    return leaders_.empty() ? kNever : Search(policy, queue);
  }

 private:
  TimePoint Search(const Policy& policy, const QueueRecord& queue) const;

  const Array<DeviceRecord*>& devices_;
  Array<Claim> leaders_;  // of these devices; those where one has been held longest first
  Array<Claim> found_;    // kept for its memory
};

}  // namespace xsched::sched
