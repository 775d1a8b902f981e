// The programs of `xsched calibrate` on the first OpenCL device (cli/platform.h).
#pragma once

#include <memory>

#include "cli/calibrate/work_device.h"

namespace xsched::cli::opencl {

std::unique_ptr<WorkDevice> OpenWorkDevice();

}  // namespace xsched::cli::opencl
