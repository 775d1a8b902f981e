// The queues of a device that a decision has to consider (DeviceRecord::active). An idle queue runs, is
// charged for nothing, and was told so. As long as nothing happens to it, the decisions leave it out. So they
// cost as much as there are queues with work, and not as much as there are queues.
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

void AddActive(QueueRecord& queue);
// Something has happened to the queue.
inline void Activate(QueueRecord& queue) {
  if (!queue.active) AddActive(queue);
}
// Something has changed that matters to idle queues as well.
void ActivateAll(DeviceRecord& device);
// After a decision: leaves out the idle queues for which it has changed nothing that would not last.
void LeaveOutIdle(DeviceRecord& device);
// The queue is to be deleted.
void RemoveActive(QueueRecord& queue);

}  // namespace xsched::sched
