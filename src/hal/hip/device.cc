#include "hal/hip/device.h"

namespace xsched::hip {

bool IdentifyDevice(const Functions& next, int device, DeviceIdentity* out, const char* sysfs) {
  char address[32] = "";
  if (next.hipDeviceGetPCIBusId == nullptr ||
      next.hipDeviceGetPCIBusId(address, sizeof address, device) != hipSuccess) {
    return false;
  }
  const std::optional<XDeviceId> id = ReadPciAddress(address);
  if (!id) return false;
  out->device = PciDeviceAt(sysfs, *id);
  if (next.hipDeviceGetName == nullptr ||
      next.hipDeviceGetName(out->name, sizeof out->name, device) != hipSuccess) {
    out->name[0] = '\0';
  }
  return true;
}

}  // namespace xsched::hip
