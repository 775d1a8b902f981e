// The part of the resource manager's ioctl interface that matters here: numbers and layouts as the open
// kernel modules publish them.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace standin::rm {

constexpr unsigned kMagic = 'F';
constexpr unsigned kFree = 0x29, kControl = 0x2a, kAlloc = 0x2b;

constexpr uint32_t kClassRootClient = 0x41, kClassDevice = 0x80, kClassSubdevice = 0x2080,
                   kClassGroup = 0xa06c, kClassChannel = 0xc86f, kClassCompute = 0xcbc0, kClassCopy = 0xc8b5;

constexpr uint32_t kGroupSchedule = 0xa06c0101, kGroupSetTimeslice = 0xa06c0103,
                   kGroupGetTimeslice = 0xa06c0104, kGroupGetInfo = 0xa06c0106;
constexpr uint32_t kSubdeviceDisableChannels = 0x2080110b;
constexpr uint32_t kSubdeviceGetGpuId = 0x20800142, kClientGetPciInfo = 0x21b;

constexpr uint32_t kOk = 0, kInvalidArgument = 0x1f, kInvalidObject = 0x33, kNotSupported = 0x56,
                   kTimeout = 0x65;

// Allocations come in two sizes.
struct Alloc21 {
  uint32_t root, parent, object, object_class;
  uint64_t parameters;
  uint32_t parameters_size, status;
};
struct Alloc64 {
  uint32_t root, parent, object, object_class;
  uint64_t parameters, rights;
  uint32_t parameters_size, flags, status, padding;
};
struct Free {
  uint32_t root, parent, object, status;
};
struct Control {
  uint32_t client, object, command, flags;
  uint64_t parameters;
  uint32_t parameters_size, status;
};
struct DeviceParameters {
  uint32_t device;
  uint32_t rest[13];
};
struct DisableChannels {
  uint8_t disable;
  uint32_t count;
  uint8_t only_scheduling, rewind;
  alignas(8) uint64_t event;
  uint32_t clients[64], channels[64];
};
struct PciInfo {
  uint32_t gpu_id, domain;
  uint16_t bus, slot;
};
static_assert(sizeof(DisableChannels) == 536 && sizeof(PciInfo) == 12);
static_assert(sizeof(Alloc21) == 32 && sizeof(Alloc64) == 48 && sizeof(Free) == 16 && sizeof(Control) == 32);

template <typename T>
constexpr unsigned long Request(unsigned number) {
  return _IOC(_IOC_READ | _IOC_WRITE, kMagic, number, sizeof(T));
}

}  // namespace standin::rm
