// Intercepts ioctl of the program and of its drivers' libraries, for a shim whose HAL needs to see a driver's
// requests for levels 2 and 3.
#pragma once

namespace xsched::shim {

// As ioctl(2), without this library.
int NextIoctl(int fd, unsigned long request, void* argument);

// As ioctl(2), for the program. Implemented by the shim, which calls NextIoctl.
int PerformIoctl(int fd, unsigned long request, void* argument);

}  // namespace xsched::shim
