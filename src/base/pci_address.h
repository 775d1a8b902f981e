// A GPU's number, computed from its PCI address: the same in every process and on every platform.
#pragma once

#include <stdio.h>

#include <cstdint>
#include <optional>

#include "xsched/types.h"

namespace xsched {

// Fits below bit 31, which marks numbers that are no PCI address.
constexpr XDeviceId PciAddress(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  return ((domain & 0x7fff) << 16) | ((bus & 0xff) << 8) | ((device & 0x1f) << 3) | (function & 0x7);
}

// Reads the text form that drivers use: 0000:3b:00.0, in hexadecimal digits. The function may be missing.
inline std::optional<XDeviceId> ReadPciAddress(const char* text) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) return std::nullopt;
  return PciAddress(domain, bus, device, function);
}

// That form of a device's address, with all parts.
struct PciAddressText {
  char text[16];
};
inline PciAddressText TextOfPciAddress(XDevice device) {
  const auto id = static_cast<XDeviceId>(device);
  PciAddressText address;
  snprintf(address.text, sizeof address.text, "%04x:%02x:%02x.%x", id >> 16, id >> 8 & 0xff, id >> 3 & 0x1f,
           id & 7);
  return address;
}

constexpr XDevice MakeDevice(XDeviceType type, XDeviceId id) { return uint64_t{type} << 32 | id; }

// Of a number that a client has sent, too: a type that does not exist is unknown.
constexpr XDeviceType TypeOfDevice(XDevice device) {
  const uint64_t type = device >> 32 & 0xff;
  return type <= kDeviceTypeMCA ? static_cast<XDeviceType>(type) : kDeviceTypeUnknown;
}

// Bit 31 of the number is set if the device has no PCI address, or none that is known.
constexpr bool HasPciAddress(XDevice device) {
  return TypeOfDevice(device) == kDeviceTypeGPU && (device & uint64_t{1} << 31) == 0;
}

// A part of a GPU that is divided by hardware (MIG, CPX), used as a separate device. Parts share only the
// address of the whole. `part` (24 bits) is above the type; where the whole is part 0, it has its number.
constexpr XDevice PartOfDevice(XDevice whole, uint32_t part) { return whole | uint64_t{part} << 40; }
constexpr XDevice WholeDevice(XDevice device) { return device & ((uint64_t{1} << 40) - 1); }
constexpr uint32_t NumberOfPart(XDevice device) { return static_cast<uint32_t>(device >> 40); }

}  // namespace xsched
