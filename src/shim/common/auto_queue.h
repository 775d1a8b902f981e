// XQueues that a shim makes by itself, over the queues of programs that know nothing of XSched.
#pragma once

#include "hal/contract.h"

namespace xsched::shim {

// Makes an XQueue over `hwq`, if making that one succeeded (`made`); where either fails, its queue runs
// unscheduled. `what`: the queue, for the warning of that, which comes once: "a CUDA stream".
void CreateXQueue(XResult made, HwQueueHandle hwq, const char* what);

}  // namespace xsched::shim
