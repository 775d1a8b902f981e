#include "shim/cuda/events.h"

#include "hal/cuda/capture_mode.h"

namespace xsched::cuda {
namespace {

bool HasHappened(CUevent event) {
  preempt::ReentrancyGuard guard;
  const Functions& next = Driver();
  RelaxedCaptureMode relaxed(next);
  return next.cuEventQuery != nullptr && next.cuEventQuery(event) == CUDA_SUCCESS;
}

// Whom a wait of `waiter` for `event`, which stands at `point`, is to be told of. Null: that has happened, or
// nobody cares.
preempt::XQueue* AwaitedQueue(preempt::XQueue* waiter, CUevent event, const shim::EventPoint& point) {
  preempt::XQueue* owner = point.AwaitedBy(waiter);
  if (owner == nullptr || !HasHappened(event)) return owner;
  point.HasHappened();
  return nullptr;
}

}  // namespace

EventRecording::EventRecording(const Call&, CUstream stream, CUevent event)
    : event_(shim::FindEvent(HandleOf(event))) {
  if (event_ == nullptr) return;
  if (IsCapturing(stream)) {
    point_ = shim::EventPoint::InCapture();
    return;
  }
  const uint64_t key = KeyOf(stream);
  preempt::XQueue* queue = shim::FindQueue(key);
  shim::Stream* record = queue == nullptr ? nullptr : RecordOf(stream, key);
  if (record != nullptr) point_ = shim::EventPoint::NewestOn(record, queue);
}

EventOrder::EventOrder(const Call&, CUstream stream, CUevent event) {
  preempt::XQueue* waiter = QueueForCommand(stream);
  if (waiter == nullptr) return;
  const shim::EventPoint point = shim::PointOf(HandleOf(event));
  if (point.in_capture()) {
    // Such a call puts nothing on the stream, and so does not wait for room on it; it waits only for a launch
    // by another thread that does.
    if (preempt::NoLaunchUnderWay(waiter)) joins_capture_.emplace();
    return;
  }
  preempt::XQueue* owner = AwaitedQueue(waiter, event, point);
  if (owner == nullptr) return;
  wait_.emplace(waiter);
  preempt::AddDependency(waiter, owner, point.number);
}

ContextOrder::ContextOrder(const Call&, CUcontext context, CUevent event) {
  const shim::EventPoint point = shim::PointOf(HandleOf(event));
  const uint64_t home = HomeOf(context == nullptr ? CurrentContext() : context);
  shim::ForEachStream([&](const shim::Stream& stream) {
    if (stream.home.load(std::memory_order_relaxed) != home) return;
    preempt::XQueue* waiter = shim::FindQueue(stream.key.load(std::memory_order_acquire));
    if (waiter == nullptr) return;
    if (preempt::XQueue* owner = AwaitedQueue(waiter, event, point))
      preempt::AddDependency(waiter, owner, point.number);
  });
}

}  // namespace xsched::cuda
