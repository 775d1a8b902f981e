#include "shim/common/auto_queue.h"

#include <atomic>

#include "base/log.h"
#include "preempt/api/launch.h"
#include "xsched/xqueue.h"

namespace xsched::shim {

void CreateXQueue(XResult made, HwQueueHandle hwq, const char* what) {
  // The program has registered the stream itself, without an XQueue. We leave that as it is.
  if (made == kXSchedErrorNotAllowed) return;
  XResult result = made;
  if (result == kXSchedSuccess) {
    result = preempt::AutoXQueueCreate(hwq);
    if (result == kXSchedSuccess) return;
    HwQueueDestroy(hwq);
  }
  static constinit std::atomic<bool> warned{false};
  if (!warned.exchange(true)) XSCHED_WARN("%s runs unscheduled (XSched error %d)", what, result);
}

}  // namespace xsched::shim
