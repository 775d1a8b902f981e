// How the shim, which sees the process's requests to the resource manager, tells the HAL of them.
#pragma once

#include "hal/contract.h"
#include "hal/cuda/channel_groups/resource_manager.h"

#ifdef __cplusplus
extern "C" {
#endif

// To be called after each ioctl(2) that may concern it (rm::MayConcern), with what it returned. Keeps errno.
// `next`: where the request went to. Our own go there as well: whoever stands in between knows the objects by
// the same names as the program's driver.
XSCHED_PRIVATE void CudaObserveRequest(int fd, unsigned long request, const void* arg, int result,
                                       xsched::cuda::rm::ControlCall next);

#ifdef __cplusplus
}
#endif
