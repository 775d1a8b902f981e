// What NVML says of a device's memory, under a limit: nvidia-smi and many programs ask it, and not the
// driver. A program finds its functions by linking or by dlsym, as those of the driver.
#pragma once

#include "shim/common/dl_hooks.h"

namespace xsched::cuda {

// As shim::LookUp, for functions of NVML.
shim::Lookup LookUpNvml(void* handle, const char* name, const void* caller);

}  // namespace xsched::cuda
