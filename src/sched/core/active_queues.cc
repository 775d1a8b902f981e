#include "sched/core/active_queues.h"

#include <algorithm>

#include "sched/core/accounting.h"

namespace xsched::sched {
namespace {

// The index of the first active queue whose id is not smaller.
size_t PlaceOf(const QueueRecord& queue) {
  const Array<QueueRecord*>& active = queue.device->active;
  auto before = [](const QueueRecord* other, QueueId id) { return other->id < id; };
  return static_cast<size_t>(std::lower_bound(active.begin(), active.end(), queue.id, before) -
                             active.begin());
}

// A process and a tenant know the sum of what their other queues have received (views.cc), and a process what
// these have retired (process_slices.cc).
void Mark(QueueRecord& queue, bool active) {
  queue.active = active;
  const Received received = ReceivedBy(queue);
  ProcessRecord& process = *queue.process;
  for (Received* others : {&process.received_by_others, &process.tenant->received_by_others}) {
    if (active) {
      *others -= received;
    } else {
      *others += received;
    }
  }
  process.retired_of_others += active ? -queue.retired : queue.retired;
}

// Its state lasts until something happens to it, or to the device (Controls::Apply).
bool IsSettled(const QueueRecord& queue) {
  return queue.state == QueueState::kIdle && queue.run && queue.limited_until == TimePoint{} &&
         !queue.awaited && queue.wait_count == 0 && !queue.launches.is_bound();
}

}  // namespace

void AddActive(QueueRecord& queue) {
  queue.device->active.Insert(PlaceOf(queue), &queue);
  Mark(queue, true);
}

void ActivateAll(DeviceRecord& device) {
  if (device.active.size() == device.queues.size()) return;
  device.active.Clear();
  for (QueueRecord* queue : device.queues) {
    [[maybe_unused]] bool pushed = device.active.Push(queue);  // reserved when the queue was added
    if (!queue->active) Mark(*queue, true);
  }
}

void LeaveOutIdle(DeviceRecord& device) {
  size_t kept = 0;
  for (QueueRecord* queue : device.active) {
    if (IsSettled(*queue)) {
      Mark(*queue, false);
    } else {
      device.active[kept++] = queue;
    }
  }
  while (device.active.size() > kept) device.active.Pop();
}

void RemoveActive(QueueRecord& queue) {
  if (!queue.active) return;
  queue.device->active.Remove(PlaceOf(queue));
  Mark(queue, false);
}

}  // namespace xsched::sched
