// Which device a queue is on, as a number that is the same in every process.
#pragma once

#include "opencl/functions.h"
#include "xsched/types.h"

namespace xsched::opencl {

struct DeviceIdentity {
  // The PCI address where the driver tells it; else, with the top bit set, a hash of the platform's name, the
  // device's name, and its place among the devices of that name. A sub-device is its root device.
  XDevice device = 0;
  char name[96] = "";
};

DeviceIdentity IdentifyDevice(const Functions& next, cl_device_id device);

// Of the device, from "OpenCL 1.2 …", as 102 is 1.2; 0: unknown.
int DeviceVersion(const Functions& next, cl_device_id device);

}  // namespace xsched::opencl
