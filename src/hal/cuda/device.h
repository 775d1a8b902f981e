// Which GPU a context is on, as a number that is the same in every process and under CUDA_VISIBLE_DEVICES.
#pragma once

#include "cuda/functions.h"
#include "xsched/types.h"

namespace xsched::cuda {

struct DeviceIdentity {
  XDevice device = 0;  // by its PCI address; an instance of a divided GPU (MIG) by its number as well
  char name[96] = "";
};

// Of the current context. False: the driver does not tell.
bool IdentifyCurrentDevice(const Functions& next, DeviceIdentity* out);

}  // namespace xsched::cuda
