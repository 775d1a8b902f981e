// How urgent the process's queues are among each other on a device, for drivers that heed it
// (XHwQueueOps::apply_urgency): each step of a queue's priority above the device's least urgent queue counts.
//
// Hints that are equal make no difference, so most programs never come here. Drivers are told by the thread
// that calls them (Tell). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {

class Urgencies {
 public:
  constexpr Urgencies(XQueueTable& queues, DriverRequests& driver, const ProcessState& process)
      : queues_(queues), driver_(driver), process_(process) {}

  // Hints have changed, or a queue has come or is going.
  void Changed() { version_.fetch_add(1, std::memory_order_acq_rel); }
  void QueueCameOrGoes(const XQueue& queue);

  // Leaves it to the thread that calls drivers to tell the queue's urgency, if that is news. False: it is
  // not.
  bool Request(XQueue& queue);
  // … of each queue. For calls of the program that promise the effect: waits, but not for long.
  enum class Wait { kNo, kBriefly };
  void RequestAll(Wait wait);

  // Tells the driver how urgent the queue is, if it does not know yet. Calls the driver, which may block.
  // False: not now.
  bool Tell(XQueue& queue);

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
  Priority LeastPriority(XDevice device);
  bool HaveDiffered(XDevice device);
  int StepsAboveLeast(const XQueue& queue);
  void NoteAll();

  XQueueTable& queues_;
  DriverRequests& driver_;
  const ProcessState& process_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> have_differed_{false};  // on any device, once
  uint64_t noted_version_ = 0;              // of the thread that calls drivers

  Mutex mutex_;  // guards what follows; taken before the table's
  Known known_[1 << kKnownDevicesBits] = {};
};

}  // namespace xsched::preempt
