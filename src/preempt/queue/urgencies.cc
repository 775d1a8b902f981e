#include "preempt/queue/urgencies.h"

#include <algorithm>

namespace xsched::preempt {
namespace {

// For calls of the program that promise an effect on the driver.
constexpr Duration kAwaitDriver = std::chrono::milliseconds(40);

}  // namespace

Priority Urgencies::LeastPriority(XDevice device) {
  MutexLock lock(mutex_);
  const uint64_t now = version();
  Known& known = known_[device * 0x9e3779b97f4a7c15u >> (64 - kKnownDevicesBits)];
  if (known.device == device && known.version == now) return known.least;
  Priority least = PRIORITY_MAX;
  Priority most = PRIORITY_NO_EXECUTE;
  queues_.AnyOf([&](const XQueue& queue) {
    if (queue.state().draining() || queue.hwq().device != device) return false;
    const Priority priority = queue.hints().priority;
    least = std::min(least, priority);
    most = std::max(most, priority);
    return false;
  });
  if (least < most) have_differed_.store(true, std::memory_order_relaxed);
  known = {device, now, least};
  return least;
}

bool Urgencies::HaveDiffered(XDevice device) {
  LeastPriority(device);
  return have_differed_.load(std::memory_order_relaxed);
}

int Urgencies::StepsAboveLeast(const XQueue& queue) {
  // A server may send any number.
  const int64_t steps = int64_t{queue.hints().priority} - LeastPriority(queue.hwq().device);
  constexpr int64_t kMost = PRIORITY_MAX - PRIORITY_NO_EXECUTE;
  return static_cast<int>(std::clamp<int64_t>(steps, 0, kMost));
}

void Urgencies::QueueChanged(const XQueue& queue) {
  Changed();
  if (queue.hwq().ops.apply_urgency != nullptr && HaveDiffered(queue.hwq().device)) RequestAll(Wait::kNo);
}

bool Urgencies::IsNews(XQueue& queue) {
  if (queue.hwq().ops.apply_urgency == nullptr) return false;
  if (queue.state().draining() || queue.state().destroying()) return false;
  // It also depends on other queues' hints.
  if (in_driver_[queue.index()].version.load(std::memory_order_relaxed) == version()) return false;
  return HaveDiffered(queue.hwq().device);
}

bool Urgencies::Request(XQueue& queue) {
  return IsNews(queue) && driver_.Request(queue.index(), DriverRequests::kUrgency);
}

void Urgencies::RequestAll(Wait wait) {
  bool requested = false;
  for (uint32_t next = 0; XQueuePin queue = queues_.PinNext(&next);) requested |= Request(*queue);
  if (requested && wait == Wait::kShortly && !NoDriverCalls::Here())
    driver_.AwaitUntil(MonotonicClock::now() + kAwaitDriver);
}

// Passes the present urgencies of all queues to the HALs.
void Urgencies::NoteAll() {
  const uint64_t now = version();
  if (noted_version_ == now) return;
  for (uint32_t next = 0; XQueuePin queue = queues_.PinNext(&next);) {
    if (queue->hwq().ops.note_urgency != nullptr) Note(*queue);
  }
  noted_version_ = now;
}

void Urgencies::Note(XQueue& queue) {
  UrgencySlots::InDriver& in_driver = in_driver_[queue.index()];
  const int known = in_driver.queue == queue.id() ? in_driver.noted : 0;
  const int urgency = StepsAboveLeast(queue);
  if (known != urgency) queue.hwq().ops.note_urgency(queue.hwq().impl, urgency);
  in_driver.queue = queue.id();
  in_driver.noted = urgency;
}

bool Urgencies::Apply(XQueue& queue) {
  if (!IsNews(queue) || process_.shut_down()) return true;
  // The driver would block, and every gate would be open meanwhile.
  if (queues_.AnyMayBeFull()) return false;
  // Read before the queues, so that changes in the meantime are passed again.
  const uint64_t now = version();
  NoteAll();
  const XHwQueueOps& ops = queue.hwq().ops;
  if (ops.apply_urgency(queue.hwq().impl) != kXSchedErrorNotAllowed)
    in_driver_[queue.index()].version.store(now, std::memory_order_relaxed);
  return true;
}

}  // namespace xsched::preempt
