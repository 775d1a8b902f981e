// The driver's requests to the resource manager show which channel groups the process has (level 3).
#include "shim/common/ioctl.h"

#include "hal/cuda/observe.h"

namespace xsched::shim {

int PerformIoctl(int fd, unsigned long request, void* argument) {
  const int result = NextIoctl(fd, request, argument);
  if (cuda::rm::MayConcern(request)) [[unlikely]]
    CudaObserveRequest(fd, request, argument, result, NextIoctl);
  return result;
}

}  // namespace xsched::shim
