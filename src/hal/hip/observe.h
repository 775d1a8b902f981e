// The process's requests to the kernel's driver pass through the shim. The shim reports them to the HAL here
// (levels 2 and 3).
#pragma once

#include "hal/contract.h"
#include "hal/hip/hip_abi.h"
#include "hal/hip/kfd/requests.h"

#ifdef __cplusplus
extern "C" {
#endif

// Performs a request for which MayConcern is true, like ioctl(2). `next` performs it, and our own requests as
// well.
XSCHED_PRIVATE int HipPerformRequest(int fd, unsigned long request, void* argument,
                                     xsched::hip::kfd::IoctlCall next);

// Call these before and after the runtime makes a stream on this thread. Queues that the process makes in
// between belong to that stream. `stream`: null if it failed.
XSCHED_PRIVATE void HipStreamCreating(void);
XSCHED_PRIVATE void HipStreamCreated(hipStream_t stream);
// Before the runtime destroys it.
XSCHED_PRIVATE void HipStreamDestroying(hipStream_t stream);

#ifdef __cplusplus
}
#endif
