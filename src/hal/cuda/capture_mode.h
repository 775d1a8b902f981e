// hal/common/capture_mode.h for CUDA.
#pragma once

#include "cuda/functions.h"
#include "hal/common/capture_mode.h"

namespace xsched::cuda {

using RelaxedCaptureMode = hal::RelaxedCaptureMode<Functions, &Functions::cuThreadExchangeStreamCaptureMode,
                                                   CU_STREAM_CAPTURE_MODE_RELAXED>;

}  // namespace xsched::cuda
