#include "shim/cuda/events.h"

#include "hal/cuda/green_contexts.h"
#include "shim/cuda/commands.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {
namespace {

// True for streams of the context and of the green contexts that it owns.
bool IsOf(const shim::Stream& stream, CUcontext context) {
  const uint64_t home = stream.home.load(std::memory_order_relaxed);
  return home == HomeOf(context) || HomeOf(CudaOwnerOf(ContextOfHome(home))) == HomeOf(context);
}

}  // namespace

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
    if (!IsOf(stream, actual)) return;
    preempt::XQueue* waiter = shim::FindQueue(stream.key.load(std::memory_order_acquire));
    if (waiter == nullptr) return;
    if (preempt::XQueue* owner = shim::AwaitedQueue<Platform>(call, waiter, event, point))
      preempt::AddDependency(waiter, owner, point.number);
  });
}

}  // namespace xsched::cuda
