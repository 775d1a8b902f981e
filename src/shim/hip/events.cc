#include "shim/hip/events.h"

#include "hal/hip/capture_mode.h"
#include "hal/hip/last_error.h"

namespace xsched::hip {
namespace {

bool HasHappened(const Copy& copy, hipEvent_t event) {
  preempt::ReentrancyGuard guard;
  const Functions& next = copy.runtime().next();
  KeepLastError keep(next);
  RelaxedCaptureMode relaxed(next);
  return next.hipEventQuery(event) == hipSuccess;
}

}  // namespace

EventRecording::EventRecording(const Call& call, hipStream_t stream, hipEvent_t event)
    : event_(shim::FindEvent(HandleOf(event))) {
  if (event_ == nullptr || IsCapturing(call.copy(), stream)) return;
  const uint64_t key = KeyOf(call.copy(), stream);
  preempt::XQueue* queue = shim::FindQueue(key);
  shim::Stream* record = queue == nullptr ? nullptr : RecordOf(call.copy(), stream, key);
  if (record != nullptr) point_ = shim::EventPoint::NewestOn(record, queue);
}

EventOrder::EventOrder(const Call& call, hipStream_t stream, hipEvent_t event) {
  preempt::XQueue* waiter = QueueForCommand(call.copy(), stream);
  if (waiter == nullptr) return;
  const shim::EventPoint point = shim::PointOf(HandleOf(event));
  preempt::XQueue* owner = point.AwaitedBy(waiter);
  if (owner == nullptr) return;
  if (HasHappened(call.copy(), event)) {
    point.HasHappened();
    return;
  }
  wait_.emplace(waiter);
  preempt::AddDependency(waiter, owner, point.number);
}

}  // namespace xsched::hip
