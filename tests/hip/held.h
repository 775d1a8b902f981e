// A queue that is held, as the program meets it.
#pragma once

#include <functional>

#include "hip_api.h"
#include "xsched/xsched.h"

namespace xsched::hip {

// `launch` puts work on the stream of `queue`. While the queue is held it must not return (HIP has no gates:
// the launching thread waits), and `has_run` not hold. Returns when the queue has been resumed and `launch`
// has returned.
void ExpectHeld(XQueueHandle queue, const std::function<hipError_t()>& launch,
                const std::function<bool()>& has_run);

// False: it did not come to be so within ten seconds.
bool WaitUntil(const std::function<bool()>& condition);

}  // namespace xsched::hip
