#include "preempt/scheduling/attendant.h"

#include <algorithm>

namespace xsched::preempt {
namespace {

// How soon to try again if the driver has not opened a gate.
constexpr Duration kRefused = std::chrono::milliseconds(1);

}  // namespace

TimePoint Attendant::Attend(TimePoint now) {
  // Levels first: opening one queue's host gates may block until another queue's gates are open.
  const TimePoint slices = ApplyLevels(now);
  const XQueue::Left left = AttendQueues(XQueue::Gates::kOpen);
  if (left.stopped) {
    retry_.Failed(now);
  } else {
    retry_.Reset();
  }
  return std::min({slices, retry_.next(), left.gates ? now + kRefused : kNever});
}

bool Attendant::AttendLast(TimePoint now) {
  const TimePoint slices = ApplyLevels(now);
  return !AttendQueues(XQueue::Gates::kLeave).anything() && slices == kNever;
}

TimePoint Attendant::ApplyLevels(TimePoint now) {
  ForEachQueue(queues_, [](XQueue& queue) { queue.ApplyLevels(); });
  return slices_.Apply(now);
}

XQueue::Left Attendant::AttendQueues(XQueue::Gates gates) {
  XQueue::Left all;
  ForEachQueue(queues_, [&](XQueue& queue) {
    urgencies_.Request(queue);
    const XQueue::Left left = queue.Attend(gates);
    all.gates |= left.gates;
    all.stopped |= left.stopped;
    if (queue.state().draining() && queue.state().has_device_gates())
      driver_.Request(queue.index(), DriverRequests::kProgress);
    queues_.FinishIfDrained(queue);
  });
  return all;
}

}  // namespace xsched::preempt
