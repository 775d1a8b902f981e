#include "shim/cuda/events.h"

#include "shim/cuda/commands.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {

void AttributedLaunch::FindEventsIn(const Call& call, const CUlaunchConfig& config) {
  for (unsigned i = 0; config.attrs != nullptr && i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        UnseenRecording(call, value.programmaticEvent.event);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        UnseenRecording(call, value.launchCompletionEvent.event);
        break;
      default:
        break;
    }
  }
}

ContextOrder::ContextOrder(const Call& call, CUcontext context, CUevent event) {
  const shim::EventPoint point = shim::PointOf(shim::KeyOfEvent(event));
  const CUcontext actual = context == nullptr ? CurrentContext() : context;
  shim::ForEachStream([&](const shim::Stream& stream) {
    if (!stream.EndsWith(HomeOf(actual))) return;
    preempt::XQueue* waiter = shim::FindQueue(stream.key.load(std::memory_order_acquire));
    if (waiter == nullptr) return;
    if (preempt::XQueue* owner = shim::AwaitedQueue<Platform>(call, waiter, event, point))
      preempt::AddDependency(waiter, owner, point.number);
  });
}

}  // namespace xsched::cuda
