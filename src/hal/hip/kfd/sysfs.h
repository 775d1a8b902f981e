// Reads what the kernel's driver reports about its GPUs in /sys. It has no state.
#pragma once

#include "hal/hip/kfd/requests.h"
#include "xsched/types.h"

namespace xsched::hip::kfd {

inline constexpr const char* kSysfs = "/sys";

// The number of the PCI device at this address. Where a GPU is divided, some kernels have the part's number
// in the place of the function, so that there is no such device: then it is function 0 of the same one.
XDevice PciDeviceAt(const char* sysfs, XDeviceId address);
// The PCI address of KFD's GPU `gpu`. Parts of one GPU have the same address. 0: unknown.
XDevice DeviceOf(const char* sysfs, GpuId gpu);
// True if KFD has a GPU, or a part of one, with this address.
bool HasDevice(const char* sysfs, XDevice device);
// True if running work can be taken off the hardware, unless this was disabled on the machine.
bool SavesWaves(const char* sysfs);

}  // namespace xsched::hip::kfd
