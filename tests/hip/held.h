// A held queue, as the program sees it.
#pragma once

#include <functional>

#include "hip_api.h"
#include "xsched/xsched.h"

namespace xsched::hip {

// `launch` puts work on the stream of `queue`. Checks that while the queue is held, `launch` does not return
// (HIP has no gates, so the launching thread waits) and `has_run` is false. Returns when the queue was
// resumed and `launch` has returned.
void ExpectHeld(XQueueHandle queue, const std::function<hipError_t()>& launch,
                const std::function<bool()>& has_run);

// Waits until `condition` holds. False: it did not within ten seconds.
bool WaitUntil(const std::function<bool()>& condition);

}  // namespace xsched::hip
