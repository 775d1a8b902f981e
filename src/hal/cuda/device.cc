#include "hal/cuda/device.h"

#include "base/pci_address.h"

namespace xsched::cuda {

bool IdentifyCurrentDevice(const Functions& next, DeviceIdentity* out) {
  CUdevice device = 0;
  char address[32] = "";
  if (next.cuCtxGetDevice(&device) != CUDA_SUCCESS) return false;
  if (next.cuDeviceGetPCIBusId(address, sizeof address, device) != CUDA_SUCCESS) return false;
  const std::optional<XDeviceId> id = ReadPciAddress(address);
  if (!id) return false;
  out->device = MakeDevice(kDeviceTypeGPU, *id);
  if (next.cuDeviceGetName(out->name, sizeof out->name, device) != CUDA_SUCCESS) out->name[0] = '\0';
  return true;
}

}  // namespace xsched::cuda
