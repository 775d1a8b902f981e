// Level 3 of this process's CUDA queues, by its channel groups (channel_groups/). It acts on all of the
// process's streams on a device at once: time slices beside other processes, set when the scheduler says so;
// and a hard stop, when the program has suspended all of its queues there.
#pragma once

#include "xsched/types.h"

namespace xsched::cuda {

// A queue is being made on `device`: does it have level 3? The reason why not is logged once.
bool QueueMade(XDevice device);
void QueueGone(XDevice device);

// The program wants this one's running command stopped, or to go on. Some 0.6 ms for the last one to stop,
// and the first to go on.
XResult InterruptQueue(XDevice device);
XResult RestoreQueue(XDevice device);

}  // namespace xsched::cuda
