// What the kernel's driver says of its GPUs in /sys. Reads files; keeps nothing.
#pragma once

#include "hal/hip/kfd/requests.h"
#include "xsched/types.h"

namespace xsched::hip::kfd {

inline constexpr const char* kSysfs = "/sys";

// The GPU that KFD calls `gpu`, by its PCI address; parts of one GPU have the same. 0: it does not say.
XDevice DeviceOf(const char* sysfs, GpuId gpu);
// Has KFD a GPU, or a part of one, with this address?
bool HasDevice(const char* sysfs, XDevice device);
// Can what runs be taken off the hardware? It is so unless someone has turned it off for the machine.
bool SavesWaves(const char* sysfs);

}  // namespace xsched::hip::kfd
