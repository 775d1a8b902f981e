// Reads what the kernel's driver reports about its GPUs in /sys. It has no state.
#pragma once

#include "hal/hip/kfd/requests.h"
#include "xsched/types.h"

namespace xsched::hip::kfd {

// The PCI device of KFD's GPU `gpu`: the whole one, also if `gpu` is a part. 0: unknown.
XDevice DeviceOf(const char* sysfs, GpuId gpu);
// True if KFD has the GPU that `device` is, or is a part of.
bool HasDevice(const char* sysfs, XDevice device);
// True if running work can be taken off the hardware, unless this was disabled on the machine.
bool SavesWaves(const char* sysfs);

}  // namespace xsched::hip::kfd
