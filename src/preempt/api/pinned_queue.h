// A queue of this process, for the time of one call of the C API.
#pragma once

#include "base/no_cancellation.h"
#include "preempt/api/process.h"

namespace xsched::preempt {

class PinnedQueue {
 public:
  explicit PinnedQueue(XQueueHandle handle) : pin_(ThisProcess().queues.Pin(handle)) {}

  explicit operator bool() const { return static_cast<bool>(pin_); }
  XQueue* operator->() const { return pin_.operator->(); }
  XQueue& operator*() const { return *pin_; }

 private:
  const NoCancellation with_pin_;  // a thread that is canceled in the call would leave its pin for ever
  const XQueuePin pin_;
};

}  // namespace xsched::preempt
