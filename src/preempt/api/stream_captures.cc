#include "preempt/api/stream_captures.h"

#include "preempt/api/process.h"

namespace xsched::preempt {

XQueue* StreamCaptures::Pin(XQueue* queue) {
  return queue != nullptr && ThisProcess().queues.TryPin(*queue) ? queue : nullptr;
}

void StreamCaptures::Unpin(XQueue* queue) { ThisProcess().queues.Unpin(*queue); }

}  // namespace xsched::preempt
