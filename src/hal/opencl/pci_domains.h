// Where the machine has devices, for drivers that report a PCI address without its domain.
#pragma once

#include <cstdint>

#include "base/array.h"

namespace xsched::opencl {

// The domains in which a GPU of this vendor has this bus, device and function, in ascending order. None if
// `sysfs` cannot be read.
Array<uint32_t> PciDomains(const char* sysfs, uint32_t vendor, uint32_t bus, uint32_t device,
                           uint32_t function);

}  // namespace xsched::opencl
