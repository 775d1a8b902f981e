// The number of the GPU at a PCI address that a driver reports, where that may be a part of a divided GPU.
#pragma once

#include <stdio.h>
#include <unistd.h>

#include "base/pci_address.h"

namespace xsched {

inline constexpr const char* kSysfs = "/sys";

inline bool HasPciDevice(const char* sysfs, XDeviceId address) {
  char path[512];
  snprintf(path, sizeof path, "%s/bus/pci/devices/%04x:%02x:%02x.%x", sysfs, address >> 16,
           address >> 8 & 0xff, address >> 3 & 0x1f, address & 0x7);
  return access(path, F_OK) == 0;
}

// Where a GPU is divided (CPX, DPX), some drivers have the part's number in the place of the function.
// There is no PCI device of that function then: it is this part of the one with function 0. `has`: whether
// there is a PCI device of a function.
template <typename Has>
bool IsPartOfFunction0(uint32_t function, const Has& has) {
  return function != 0 && !has(function) && has(0);
}

inline XDevice PciDeviceAt(const char* sysfs, XDeviceId address) {
  const XDeviceId part = address & 0x7;
  const XDeviceId whole = address - part;
  const bool is_part = IsPartOfFunction0(part, [&](uint32_t of) { return HasPciDevice(sysfs, whole + of); });
  return is_part ? PartOfDevice(MakeDevice(kDeviceTypeGPU, whole), part)
                 : MakeDevice(kDeviceTypeGPU, address);
}

}  // namespace xsched
