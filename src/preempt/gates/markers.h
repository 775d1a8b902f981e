// The markers of one queue that are under way in its driver: a driver reports each once, by its ticket
// (XHwQueueOps::append_marker, HwQueueRetired). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace xsched::preempt {

// Names a command of the process to a driver.
struct Ticket {
  uint32_t queue;   // index of its slot
  uint64_t number;  // of the command

  static constexpr Ticket Unpack(uint64_t packed) {
    return {static_cast<uint32_t>(packed >> kNumberBits), packed & ((uint64_t{1} << kNumberBits) - 1)};
  }
  constexpr uint64_t Pack() const { return uint64_t{queue} << kNumberBits | number; }

 private:
  // 2^48 commands are 8 years at one per microsecond.
  static constexpr int kNumberBits = 48;
};

class Markers {
 public:
  // The driver is about to get a marker.
  void Count() { count_.fetch_add(1, std::memory_order_relaxed); }
  // It refused it.
  void Forget() { count_.fetch_sub(1, std::memory_order_relaxed); }
  // It has reported one, at `now`. `report()` uses the queue's slot, which may be reused when all markers are
  // reported.
  template <typename Report>
  void Reached(TimePoint now, Report&& report) {
    reached_at_ns_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    report();
    // Release, against UnderWay: the slot's next queue sees all that report() did.
    count_.fetch_sub(1, std::memory_order_release);
  }
  bool UnderWay() const { return count_.load(std::memory_order_acquire) != 0; }
  // When the last one was reported.
  TimePoint reached_at() const { return TimePoint(Duration(reached_at_ns_.load(std::memory_order_relaxed))); }

 private:
  std::atomic<uint32_t> count_{0};
  std::atomic<int64_t> reached_at_ns_{0};
};

}  // namespace xsched::preempt
