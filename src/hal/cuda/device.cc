#include "hal/cuda/device.h"

#include <stdio.h>

#include "base/pci_address.h"

namespace xsched::cuda {

bool IdentifyCurrentDevice(const Functions& next, DeviceIdentity* out) {
  CUdevice device = 0;
  char address[32] = "";
  if (next.cuCtxGetDevice(&device) != CUDA_SUCCESS) return false;
  if (next.cuDeviceGetPCIBusId(address, sizeof address, device) != CUDA_SUCCESS) return false;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) return false;
  out->device = MakeDevice(kDeviceTypeGPU, PciAddress(domain, bus, slot, function));
  if (next.cuDeviceGetName(out->name, sizeof out->name, device) != CUDA_SUCCESS) out->name[0] = '\0';
  return true;
}

}  // namespace xsched::cuda
