// Which processes work together, as far as a shim finds it out.
#pragma once

#include <span>

#include "hal/contract.h"

namespace xsched::preempt {

// This process works together with all of its user that say the same bytes: they are one job from now on
// (ipc/job.h). The scheduler is told now, or when there is one. Thread-safe.
XSCHED_PRIVATE void JoinJob(std::span<const char> id);

}  // namespace xsched::preempt
