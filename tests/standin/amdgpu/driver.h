// The kernel's driver for compute, as one process sees it. Thread-safe. What it accepts and refuses is in
// rules.h.
#pragma once

namespace standin_amdgpu {

// ioctl(2) of /dev/kfd. Returns 0 or an error as of errno.
int PerformKfd(unsigned long request, void* argument);

}  // namespace standin_amdgpu
