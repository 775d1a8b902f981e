// A GPU's number, made from its PCI address: the same in every process and on every platform that reaches it.
#pragma once

#include <cstdint>

#include "xsched/types.h"

namespace xsched {

// Fits below bit 31, which marks numbers that are no PCI address.
constexpr XDeviceId PciAddress(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  return ((domain & 0x7fff) << 16) | ((bus & 0xff) << 8) | ((device & 0x1f) << 3) | (function & 0x7);
}

constexpr XDevice MakeDevice(XDeviceType type, XDeviceId id) { return uint64_t{type} << 32 | id; }

}  // namespace xsched
