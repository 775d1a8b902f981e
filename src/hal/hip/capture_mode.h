// hal/common/capture_mode.h for HIP.
#pragma once

#include "hal/common/capture_mode.h"
#include "hal/hip/runtime.h"

namespace xsched::hip {

using RelaxedCaptureMode = hal::RelaxedCaptureMode<Functions, &Functions::hipThreadExchangeStreamCaptureMode,
                                                   hipStreamCaptureModeRelaxed>;

}  // namespace xsched::hip
