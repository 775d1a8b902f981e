// The process's requests to the kernel's driver show which hardware queues it has (levels 2 and 3).
#include "shim/common/ioctl.h"

#include "hal/hip/observe.h"

namespace xsched::shim {

int PerformIoctl(int fd, unsigned long request, void* argument) {
  if (hip::kfd::MayConcern(request)) [[unlikely]]
    return HipPerformRequest(fd, request, argument, NextIoctl);
  return NextIoctl(fd, request, argument);
}

}  // namespace xsched::shim
