#include "hal/cuda/observe.h"

#include "hal/cuda/channel_groups/channel_groups.h"

void CudaObserveRequest(int fd, unsigned long request, const void* arg, int result,
                        xsched::cuda::rm::ControlCall next) {
  xsched::cuda::OwnChannelGroups().UseControlCall(next);
  xsched::cuda::ObserveRequest(fd, request, arg, result);
}
