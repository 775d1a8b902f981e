#include "hal/opencl/device_id.h"

#include <stdio.h>
#include <string.h>

namespace xsched::opencl {
namespace {

// Vendors' ways to tell a PCI address; numbers from their extension headers.
constexpr cl_device_info kPciBusInfoKhr = 0x410F;    // {domain, bus, device, function}, 32 bits each
constexpr cl_device_info kPciBusIdNv = 0x4008;       // bus
constexpr cl_device_info kPciSlotIdNv = 0x4009;      // device << 3 | function
constexpr cl_device_info kPciDomainIdNv = 0x400A;    // domain
constexpr cl_device_info kTopologyAmd = 0x4037;      // {u32 type = 1, 17 unused bytes, bus, device, function}

template <typename T>
bool DeviceInfo(const OclDriver& driver, cl_device_id device, cl_device_info what, T* value) {
  return driver.clGetDeviceInfo(device, what, sizeof *value, value, nullptr) == CL_SUCCESS;
}

constexpr XDeviceId PciAddress(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  return domain << 16 | (bus & 0xff) << 8 | (device & 0x1f) << 3 | (function & 7);
}

bool PciId(const OclDriver& driver, cl_device_id device, XDeviceId* id) {
  uint32_t khr[4];
  if (DeviceInfo(driver, device, kPciBusInfoKhr, &khr)) {
    *id = PciAddress(khr[0], khr[1], khr[2], khr[3]);
    return true;
  }
  cl_uint bus;
  cl_uint slot;
  if (DeviceInfo(driver, device, kPciBusIdNv, &bus) && DeviceInfo(driver, device, kPciSlotIdNv, &slot)) {
    cl_uint domain = 0;
    DeviceInfo(driver, device, kPciDomainIdNv, &domain);
    *id = PciAddress(domain, bus, slot >> 3, slot & 7);
    return true;
  }
  struct {
    uint32_t type;
    unsigned char unused[17];
    unsigned char bus, device, function;
  } amd;
  if (DeviceInfo(driver, device, kTopologyAmd, &amd) && amd.type == 1) {
    *id = PciAddress(0, amd.bus, amd.device, amd.function);
    return true;
  }
  return false;
}

uint32_t Hash(uint32_t hash, const char* text) {
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619u;
  return hash;
}

// Where there is no address: names, and the place among devices of the same name, are the same in all processes.
XDeviceId NameId(const OclDriver& driver, cl_device_id device, cl_platform_id platform, const char* name) {
  char platform_name[128] = "";
  driver.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, nullptr);
  cl_device_id all[64];
  cl_uint count = 0;
  driver.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, all, &count);
  uint32_t namesakes = 0;
  for (cl_uint i = 0; i < count && i < 64 && all[i] != device; ++i) {
    char other[128] = "";
    driver.clGetDeviceInfo(all[i], CL_DEVICE_NAME, sizeof other, other, nullptr);
    namesakes += strcmp(other, name) == 0;
  }
  return (Hash(Hash(2166136261u, platform_name), name) & ~0xfu) | (namesakes & 0xf);
}

XDeviceType TypeOf(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return kDeviceTypeGPU;
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return kDeviceTypeCPU;
  if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return kDeviceTypeASIC;
  return kDeviceTypeUnknown;
}

}  // namespace

bool IdentifyDevice(const OclDriver& driver, cl_command_queue queue, DeviceIdentity* identity) {
  cl_device_id device = nullptr;
  if (driver.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr) != CL_SUCCESS) return false;
  for (cl_device_id parent = device; parent != nullptr;) {
    device = parent;
    parent = nullptr;
    if (!DeviceInfo(driver, device, CL_DEVICE_PARENT_DEVICE, &parent)) break;
  }
  char name[128] = "";
  cl_platform_id platform = nullptr;
  cl_device_type type = 0;
  if (driver.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr) != CL_SUCCESS ||
      !DeviceInfo(driver, device, CL_DEVICE_PLATFORM, &platform) || !DeviceInfo(driver, device, CL_DEVICE_TYPE, &type)) {
    return false;
  }
  XDeviceId id;
  if (!PciId(driver, device, &id)) id = NameId(driver, device, platform, name);
  identity->device = uint64_t{static_cast<uint32_t>(TypeOf(type))} << 32 | id;
  snprintf(identity->name, sizeof identity->name, "%s", name);
  return true;
}

}  // namespace xsched::opencl
