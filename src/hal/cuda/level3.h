// Level 3 of this process's CUDA queues, by its channel groups (channel_groups/). It acts on all of the
// process's streams on a device at once. It sets time slices when the scheduler decides so, and makes a hard
// stop when the program has suspended all of its queues there.
#pragma once

#include "hal/contract.h"
#include "xsched/types.h"

namespace xsched::cuda {

// A queue is being made on `device`. Returns whether it has level 3. If not, the reason is logged once.
bool QueueMade(XDevice device);

// InterruptQueue stops all of the process on the device. It runs again after as many calls of RestoreQueue.
// Each takes some 0.3 ms.
XResult InterruptQueue(XDevice device);
XResult RestoreQueue(XDevice device);

}  // namespace xsched::cuda

#ifdef __cplusplus
extern "C" {
#endif

// Writes why streams on the current context's GPU have no level 3. Empty: they have it. For xsched doctor.
XSCHED_PRIVATE void CudaExplainLevel3(char* text, size_t size);

#ifdef __cplusplus
}
#endif
