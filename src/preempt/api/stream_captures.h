// The scope of a call by which a stream begins to capture, or joins a capture. What was launched counts as
// finished for schedulers, if the driver will not say (gates/caller_waits.h).
#pragma once

#include <optional>

#include "base/no_cancellation.h"
#include "preempt/api/query_lock.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

class StreamCaptures {
 public:
  // `queue`: the stream's. Null: it has none. `queries_wait`: our own queries of streams wait until the end
  // of the call, because they would invalidate a capture that begins at the same time.
  StreamCaptures(XQueue* queue, bool queries_wait) : pinned_(Pin(queue)) {
    if (pinned_ != nullptr) pinned_->flow().OnCapture();
    if (queries_wait) no_queries_.emplace();
  }
  ~StreamCaptures() {
    no_queries_.reset();
    if (pinned_ != nullptr) Unpin(pinned_);
  }
  StreamCaptures(const StreamCaptures&) = delete;
  StreamCaptures& operator=(const StreamCaptures&) = delete;

 private:
  XSCHED_PRIVATE static XQueue* Pin(XQueue* queue);
  XSCHED_PRIVATE static void Unpin(XQueue* queue);

  NoCancellation to_its_end_;
  XQueue* const pinned_;
  std::optional<CaptureLock> no_queries_;
};

}  // namespace xsched::preempt
