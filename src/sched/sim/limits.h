// Checks what the scheduler says of limits (RESERVE): the last part of promise 1 (promises.h).
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sched/sim/device_model.h"

namespace xsched::sched::sim {

class Limits {
 public:
  explicit Limits(std::span<const QueueModel> queues) : queues_(queues) {}

  // The present situation has lasted for `elapsed`, since `from`.
  void Hold(TimePoint from, Duration elapsed);
  // For how long a limit may keep a queue from running, whose long commands have used up several periods.
  static Duration Longest();
  // The scheduler says for how long the queue has used up its limit, from now on; zero: it has not. Returns
  // how that breaks the promise; empty: it does not.
  std::string Check(size_t queue, Duration limited_for, TimePoint now);
  bool IsUsedUp(size_t queue) const { return used_up_[queue]; }

 private:
  using Stretch = std::pair<TimePoint, TimePoint>;

  Duration StrictestOf(const QueueScript& queue) const;
  Duration LetRun(const QueueScript& queue, TimePoint since) const;

  std::span<const QueueModel> queues_;
  bool used_up_[kMaxQueues] = {};
  // When a queue of the process was not held on the device, or the device had something of it, as far back as
  // it matters.
  std::vector<Stretch> stretches_[kMaxProcesses][kMaxDevices];
};

}  // namespace xsched::sched::sim
