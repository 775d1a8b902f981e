// The process's requests to the kernel's driver tell which hardware queues it has (levels 2 and 3).
#include "shim/common/ioctl.h"

#include "hal/hip/observe.h"

namespace xsched::shim {

void ObserveIoctl(int fd, unsigned long request, void* argument, int result) {
  if (hip::kfd::MayConcern(request)) [[unlikely]]
    HipObserveRequest(fd, request, argument, result, NextIoctl);
}

}  // namespace xsched::shim
