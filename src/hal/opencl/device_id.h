// Which device a queue is on: the same number in every process.
#pragma once

#include "hal/opencl/driver.h"

namespace xsched::opencl {

struct DeviceIdentity {
  XDevice device;
  char name[96];
};

// Sub-devices count as their parent: they share its hardware. False: the driver does not answer.
bool IdentifyDevice(const OclDriver& driver, cl_command_queue queue, DeviceIdentity* identity);

}  // namespace xsched::opencl
