// Levels 2 and 3 of HIP streams, by suspending hardware queues (kfd/). A suspended queue stops where it is,
// so level 2 does the same as level 3:
//
//   a stream with its own hardware queue    is suspended by itself               XSCHED_HIP_LEVEL=2 or 3
//   any other stream                        with all of the process, if          XSCHED_HIP_LEVEL=3
//                                           nothing else of it has work there
//
// Off unless that variable is set: none of it has been run on AMD hardware.
#pragma once

#include "hal/contract.h"
#include "hal/hip/hip_abi.h"
#include "hal/hip/kfd/hardware_queues.h"
#include "xsched/types.h"

namespace xsched::hip {

// XSCHED_HIP_LEVEL; level 1 unless it is set.
XPreemptLevel MostLevel();
// The hardware queues of this process. Handles fork.
kfd::HardwareQueues& OwnHardwareQueues();

enum class Suspension { kNone, kStream, kProcess };
// How a stream of `device` that gets a queue can be suspended. The reason why it cannot is logged once.
Suspension SuspensionOf(XDevice device, hipStream_t stream);

}  // namespace xsched::hip

#ifdef __cplusplus
extern "C" {
#endif

// The highest level of the current device's streams, and why there is no higher one ("" at level 3). This is
// tested: the process is stopped there for a moment. For xsched doctor.
XSCHED_PRIVATE int HipTryLevels(char* why_no_more, size_t size);

#ifdef __cplusplus
}
#endif
