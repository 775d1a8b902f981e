// The relative urgency of the process's queues on a device, for drivers with priorities
// (XHwQueueOps::apply_urgency). It is the number of steps by which a queue's priority is above that of the
// device's least urgent queue.
//
// Equal hints make no difference, so most programs never use this. The thread that calls drivers sets
// urgencies (Apply). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {

// What the drivers know of the queues, by slot. Static memory, as for the table: all zero until used.
struct UrgencySlots {
  struct InDriver {
    // Of the thread that calls drivers: what was noted, and for which queue. The slot's earlier queues do not
    // count.
    XQueueHandle queue = 0;
    int noted = 0;
    // Of the process's priorities, when it was last set in the driver. A new queue changes the version.
    std::atomic<uint64_t> version{0};
  };
  InDriver slots[ipc::kMaxQueues];
};

class Urgencies {
 public:
  constexpr Urgencies(UrgencySlots& slots, XQueueTable& queues, DriverRequests& driver,
                      const ProcessState& process)
      : in_driver_(slots.slots), queues_(queues), driver_(driver), process_(process) {}

  // Hints have changed.
  void Changed() { version_.fetch_add(1, std::memory_order_acq_rel); }
  // A queue was made or is being destroyed, or the program has set its priority in the driver.
  void QueueChanged(const XQueue& queue);

  // Asks the thread that calls drivers to set the queue's urgency, if it has changed. False: it has not.
  bool Request(XQueue& queue);
  // The same for all queues. kShortly waits for the effect, but not for long: for calls of the program that
  // promise it.
  enum class Wait { kNo, kShortly };
  void RequestAll(Wait wait);

  // Sets the queue's urgency in the driver, if it is not set yet. Calls the driver, which may block. False:
  // not possible now.
  bool Apply(XQueue& queue);

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  static constexpr int kKnownDevicesBits = 4;
  struct Known {
    XDevice device;
    uint64_t version;
    Priority least;
  };

  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  bool IsNews(XQueue& queue);
  Priority LeastPriority(XDevice device) EXCLUDES(mutex_);
  bool HaveDiffered(XDevice device);
  int StepsAboveLeast(const XQueue& queue);
  void Note(XQueue& queue);
  void NoteAll();

  UrgencySlots::InDriver* const in_driver_;
  XQueueTable& queues_;
  DriverRequests& driver_;
  const ProcessState& process_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> have_differed_{false};  // hints have once been different on some device
  uint64_t noted_version_ = 0;              // of the thread that calls drivers

  Mutex<LockRank::kUrgencies> mutex_;
  Known known_[1 << kKnownDevicesBits] GUARDED_BY(mutex_) = {};
};

}  // namespace xsched::preempt
