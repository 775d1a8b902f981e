// Identifies the GPU of a context by a number that is the same in every process, also under
// CUDA_VISIBLE_DEVICES.
#pragma once

#include "cuda/functions.h"
#include "xsched/types.h"

namespace xsched::cuda {

struct DeviceIdentity {
  XDevice device = 0;  // by its PCI address; an instance of a divided GPU (MIG) by its number as well
  char name[96] = "";
};

// False: the driver does not report it.
bool IdentifyDevice(const Functions& next, CUdevice device, DeviceIdentity* out);
// The device of the current context. False: the driver does not report it.
bool IdentifyCurrentDevice(const Functions& next, DeviceIdentity* out);

}  // namespace xsched::cuda
