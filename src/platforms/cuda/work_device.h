// The programs of `xsched calibrate` on the first CUDA device (cli/platform.h).
#pragma once

#include <memory>

#include "cli/calibrate/work_device.h"

namespace xsched::cli::cuda {

std::unique_ptr<WorkDevice> OpenWorkDevice();

}  // namespace xsched::cli::cuda
