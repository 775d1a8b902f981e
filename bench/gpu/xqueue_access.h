// XSched's queues over this process's streams, if XSched is in the process. Otherwise the program runs the
// same code natively.
#pragma once

#include <cuda.h>

#include "xsched/types.h"

namespace xsched::bench {

bool UnderXSched();

// The XQueue over a stream on which work was launched. Throws if there is none.
XQueueHandle QueueOf(CUstream stream);

void SetPriority(XQueueHandle queue, Priority priority);
void SetLevel(XQueueHandle queue, int level);
void Suspend(XQueueHandle queue);
void Resume(XQueueHandle queue);

}  // namespace xsched::bench
