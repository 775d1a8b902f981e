// Attends to all queues of the process: opens gates, ends levels 2 and 3, sets time slices. What a driver
// does not give back is tried again, soon at first and then less and less often.
//
// On the agent's thread, and on the one that ends the process. It calls a driver only to open host gates.
#pragma once

#include "base/clock.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/process_slices.h"
#include "preempt/scheduling/retry.h"

namespace xsched::preempt {

// Visits each live queue. Releasing the last pin of a queue would call the driver, so that is left to
// DriverRequests.
template <typename Visit>
void ForEachQueue(XQueueTable& queues, Visit&& visit) {
  const NoDriverCalls here;
  for (uint32_t next = 0; XQueuePin queue = queues.PinNext(&next);) visit(*queue);
}

class Attendant {
 public:
  constexpr Attendant(XQueueTable& queues, Urgencies& urgencies, ProcessSlices& slices,
                      DriverRequests& driver)
      : queues_(queues), urgencies_(urgencies), slices_(slices), driver_(driver) {}

  // Acts on all changes. Returns when to call it again; kNever: everything is given back.
  TimePoint Attend(TimePoint now);
  // The same at the end of the process, but opens no gates: that may block. False: something is not given
  // back yet.
  bool AttendLast(TimePoint now);

  void ResetAfterFork() { retry_.Reset(); }

 private:
  // What needs no driver. Returns when to call it again.
  TimePoint ApplyLevels(TimePoint now);
  XQueue::Left AttendQueues(XQueue::Gates gates);

  XQueueTable& queues_;
  Urgencies& urgencies_;
  ProcessSlices& slices_;
  DriverRequests& driver_;
  Retry retry_;  // of the agent's thread
};

}  // namespace xsched::preempt
