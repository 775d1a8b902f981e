// What the scheduler can read of a queue: which commands report that they have retired, and what the client's
// agent finds when the scheduler asks (preempt/queue). Commands report if they were launched while the queue
// was tracked. Of the others, only the end of the last one becomes known. If the agent finds the launching
// thread waiting for room in the stream twice, and launches have gone through in between, it counts a move.
#pragma once

#include "sched/sim/device_model.h"

namespace xsched::sched::sim {

class ReportModel {
 public:
  // From now on commands report. The first `silent` ones were launched before.
  void Track(const QueueModel& queue, uint64_t silent);
  // The scheduler asks: the agent checks the launching thread.
  void Ask(const QueueModel& queue);
  // As the control block shows it.
  uint64_t Retired(const QueueModel& queue);
  uint32_t moves() const { return moves_; }

 private:
  uint64_t retired_ = 0;
  uint64_t silent_ = UINT64_MAX;  // commands up to this one do not report
  uint64_t issued_when_full_ = 0;
  uint32_t moves_ = 0;
};

}  // namespace xsched::sched::sim
