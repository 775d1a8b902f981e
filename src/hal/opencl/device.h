// Identifies the device of a queue by a number that is the same in every process.
#pragma once

#include "base/pci_device.h"
#include "opencl/functions.h"
#include "xsched/types.h"

namespace xsched::opencl {

struct DeviceIdentity {
  // By the PCI address if the driver reports it, with the domain from sysfs if it does not say that; of a
  // divided GPU, the part. Otherwise, with the top bit set, a hash of the platform's name, the device's name,
  // and its position among the devices of that name. A sub-device has the number of its root device.
  XDevice device = 0;
  char name[96] = "";
};

DeviceIdentity IdentifyDevice(const Functions& next, cl_device_id device, const char* sysfs = kSysfs);

// False: the driver is known to run commands on threads of its own alone, and never in a call of the program.
bool RunsCommandsInCalls(const Functions& next, cl_device_id device);

// The device's version from "OpenCL 1.2 …", where 102 means 1.2; 0: unknown.
int DeviceVersion(const Functions& next, cl_device_id device);

}  // namespace xsched::opencl
