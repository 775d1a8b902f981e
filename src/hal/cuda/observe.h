// How the shim, which sees the process's requests to the resource manager, tells the HAL of them.
#pragma once

#include "hal/cuda/channel_groups/resource_manager.h"
#include "preempt/hal.h"

#ifdef __cplusplus
extern "C" {
#endif

// To be called after each ioctl(2) that may concern it (rm::MayConcern), with what it returned. Keeps errno.
XSCHED_PRIVATE void CudaObserveRequest(int fd, unsigned long request, const void* arg, int result);

#ifdef __cplusplus
}
#endif
