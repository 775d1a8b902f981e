// Level 3 of this process's CUDA queues, by its channel groups (channel_groups/). It acts on all of the
// process's streams on a device at once: time slices beside other processes, set when the scheduler says so;
// and a hard stop, when the program has suspended all of its queues there.
#pragma once

#include "hal/contract.h"
#include "xsched/types.h"

namespace xsched::cuda {

// A queue is being made on `device`: does it have level 3? The reason why not is logged once.
bool QueueMade(XDevice device);

// Stops all of the process on the device, or lets it go on when as many have asked for that. Some 0.3 ms
// each.
XResult InterruptQueue(XDevice device);
XResult RestoreQueue(XDevice device);

}  // namespace xsched::cuda

#ifdef __cplusplus
extern "C" {
#endif

// Why streams on the current context's GPU have no level 3; empty: they have it. For xsched doctor.
XSCHED_PRIVATE void CudaExplainLevel3(char* text, size_t size);

#ifdef __cplusplus
}
#endif
