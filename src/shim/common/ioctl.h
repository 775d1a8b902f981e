// ioctl as the program and its drivers' libraries call it, for a shim whose HAL learns from a driver's
// requests what it needs for levels 2 and 3.
#pragma once

namespace xsched::shim {

// As ioctl(2), past this library.
int NextIoctl(int fd, unsigned long request, void* argument);

// After each; implemented by the shim. Keeps errno.
void ObserveIoctl(int fd, unsigned long request, void* argument, int result);

}  // namespace xsched::shim
