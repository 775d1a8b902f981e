// Runtimes of a platform that are loaded after the agent was started.
#pragma once

#include "hal/contract.h"

namespace xsched::preempt {

// The exit handlers of such a runtime run before ours, which were registered earlier. Call this when it has
// registered its own: from then on, ours run first, and nobody asks the runtime after its end.
XSCHED_PRIVATE void ShutDownBeforeLaterRuntime();

}  // namespace xsched::preempt
