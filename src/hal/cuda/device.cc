#include "hal/cuda/device.h"

#include <string.h>

#include <algorithm>

#include "base/pci_address.h"

namespace xsched::cuda {
namespace {

// The instance of a divided GPU (MIG); 0: the device is a whole GPU. The older function returns the GPU's
// number, the newer one the instance's. If both return the instance's, the device's name shows that it is
// one.
uint32_t InstanceOf(const Functions& next, CUdevice device, const char* name) {
  CUuuid gpu{};
  CUuuid instance{};
  if (next.cuDeviceGetUuid_v2 == nullptr || next.cuDeviceGetUuid_v2(&instance, device) != CUDA_SUCCESS)
    return 0;
  if (next.cuDeviceGetUuid == nullptr || next.cuDeviceGetUuid(&gpu, device) != CUDA_SUCCESS) gpu = instance;
  if (memcmp(&gpu, &instance, sizeof gpu) == 0 && strstr(name, " MIG ") == nullptr) return 0;
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char byte : instance.bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619;
  return std::max(hash >> 8, 1u);
}

}  // namespace

bool IdentifyDevice(const Functions& next, CUdevice device, DeviceIdentity* out) {
  char address[32] = "";
  if (next.cuDeviceGetPCIBusId(address, sizeof address, device) != CUDA_SUCCESS) return false;
  const std::optional<XDeviceId> id = ReadPciAddress(address);
  if (!id) return false;
  if (next.cuDeviceGetName(out->name, sizeof out->name, device) != CUDA_SUCCESS) out->name[0] = '\0';
  out->device = MakeDevice(kDeviceTypeGPU, *id);
  if (const uint32_t instance = InstanceOf(next, device, out->name))
    out->device = PartOfDevice(out->device, instance);
  return true;
}

bool IdentifyCurrentDevice(const Functions& next, DeviceIdentity* out) {
  CUdevice device = 0;
  return next.cuCtxGetDevice(&device) == CUDA_SUCCESS && IdentifyDevice(next, device, out);
}

}  // namespace xsched::cuda
