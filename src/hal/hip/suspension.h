// Levels 2 and 3 of HIP streams, by suspending hardware queues (kfd/). A suspended queue stops where it is,
// so that whatever has level 2 has what level 3 is, too:
//
//   a stream with a hardware queue of its own     is suspended by itself      XSCHED_HIP_LEVEL=2 or 3
//   any other                                     with all of the process,    XSCHED_HIP_LEVEL=3
//                                                 while nothing else of it is at work on the device
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
// This process's. Knows about fork.
kfd::HardwareQueues& OwnHardwareQueues();

enum class Suspension { kNone, kStream, kProcess };
// How a stream of `device` that gets a queue can be suspended. The reason why it cannot is logged once.
Suspension SuspensionOf(XDevice device, hipStream_t stream);

}  // namespace xsched::hip

#ifdef __cplusplus
extern "C" {
#endif

// Which level the current device's streams have at most, and why no more; "" where there is no more. It is
// tried: the process is stopped there for a moment. For xsched doctor.
XSCHED_PRIVATE int HipTryLevels(char* why_no_more, size_t size);

#ifdef __cplusplus
}
#endif
