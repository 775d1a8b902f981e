// How the shim, which the process's requests to the kernel's driver go through, tells the HAL of them (levels
// 2 and 3).
#pragma once

#include "hal/contract.h"
#include "hal/hip/hip_abi.h"
#include "hal/hip/kfd/requests.h"

#ifdef __cplusplus
extern "C" {
#endif

// Performs a request that MayConcern, as ioctl(2) does. `next`: where it goes to, which is where our own go.
XSCHED_PRIVATE int HipPerformRequest(int fd, unsigned long request, void* argument,
                                     xsched::hip::kfd::IoctlCall next);

// Around the runtime's making of a stream on this thread: queues that the process makes in between are that
// stream's. `stream`: null when it failed.
XSCHED_PRIVATE void HipStreamCreating(void);
XSCHED_PRIVATE void HipStreamCreated(hipStream_t stream);
// Before the runtime destroys it.
XSCHED_PRIVATE void HipStreamDestroying(hipStream_t stream);

#ifdef __cplusplus
}
#endif
