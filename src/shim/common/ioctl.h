// ioctl as the program and its drivers' libraries call it, for a shim whose HAL learns from a driver's
// requests what it needs for levels 2 and 3.
#pragma once

namespace xsched::shim {

// As ioctl(2), past this library.
int NextIoctl(int fd, unsigned long request, void* argument);

// As ioctl(2), for the program; implemented by the shim, by NextIoctl.
int PerformIoctl(int fd, unsigned long request, void* argument);

}  // namespace xsched::shim
