// The shim sees the process's requests to the resource manager, and reports them to the HAL here.
#pragma once

#include "hal/contract.h"
#include "hal/cuda/channel_groups/resource_manager.h"

#ifdef __cplusplus
extern "C" {
#endif

// Call it after each ioctl(2) that may concern RM (rm::MayConcern), with the result. Keeps errno. `next`: the
// function that got the request. Our own requests use it as well, because another library in between may
// translate the objects' names.
XSCHED_PRIVATE void CudaObserveRequest(int fd, unsigned long request, const void* arg, int result,
                                       xsched::cuda::rm::ControlCall next);

#ifdef __cplusplus
}
#endif
