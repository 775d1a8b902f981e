#include "hal/hip/device.h"

#include <stdio.h>

#include "base/pci_address.h"

namespace xsched::hip {

bool IdentifyDevice(const Functions& next, int device, DeviceIdentity* out) {
  char address[32] = "";
  if (next.hipDeviceGetPCIBusId == nullptr ||
      next.hipDeviceGetPCIBusId(address, sizeof address, device) != hipSuccess) {
    return false;
  }
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) return false;
  out->device = MakeDevice(kDeviceTypeGPU, PciAddress(domain, bus, slot, function));
  if (next.hipDeviceGetName == nullptr ||
      next.hipDeviceGetName(out->name, sizeof out->name, device) != hipSuccess) {
    out->name[0] = '\0';
  }
  return true;
}

}  // namespace xsched::hip
