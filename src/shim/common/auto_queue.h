// Makes XQueues over the queues of programs that do not use XSched's API.
#pragma once

#include "hal/contract.h"

namespace xsched::shim {

// Makes an XQueue over `hwq`, if `made` says that making `hwq` succeeded. If either fails, the queue runs
// unscheduled, and there is one warning. `what` names the queue there, with its platform.
void CreateXQueue(XResult made, HwQueueHandle hwq, const char* what);

}  // namespace xsched::shim
