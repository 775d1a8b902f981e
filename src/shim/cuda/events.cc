#include "shim/cuda/events.h"

#include "shim/cuda/contexts.h"

namespace xsched::cuda {

ContextOrder::ContextOrder(const Call& call, CUcontext context, CUevent event) {
  const shim::EventPoint point = shim::PointOf(shim::KeyOfEvent(event));
  const uint64_t home = HomeOf(context == nullptr ? CurrentContext() : context);
  shim::ForEachStream([&](const shim::Stream& stream) {
    if (stream.home.load(std::memory_order_relaxed) != home) return;
    preempt::XQueue* waiter = shim::FindQueue(stream.key.load(std::memory_order_acquire));
    if (waiter == nullptr) return;
    if (preempt::XQueue* owner = shim::AwaitedQueue<Platform>(call, waiter, event, point))
      preempt::AddDependency(waiter, owner, point.number);
  });
}

}  // namespace xsched::cuda
