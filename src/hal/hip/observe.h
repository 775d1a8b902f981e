// How the shim, which sees the process's requests to the kernel's driver, tells the HAL of them (levels 2 and
// 3).
#pragma once

#include "hal/hip/hip_abi.h"
#include "preempt/hal.h"

namespace xsched::hip::kfd {

// ioctl(2), as who was asked by the program would pass it on.
using IoctlCall = int (*)(int fd, unsigned long request, void* argument);

// Can `request` be of interest? Constant and cheap: all requests to /dev/kfd have the type 'K'.
constexpr bool MayConcern(unsigned long request) { return (request >> 8 & 0xff) == 'K'; }

}  // namespace xsched::hip::kfd

#ifdef __cplusplus
extern "C" {
#endif

// To be called after each ioctl(2) that MayConcern, with what it returned. Keeps errno. `next`: where the
// request went to, which is where our own go.
XSCHED_PRIVATE void HipObserveRequest(int fd, unsigned long request, const void* argument, int result,
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
