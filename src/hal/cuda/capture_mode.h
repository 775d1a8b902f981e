// hal/common/capture_mode.h for CUDA.
#pragma once

#include "cuda/functions.h"
#include "hal/common/capture_mode.h"

namespace xsched::cuda {

struct RelaxedCaptureMode : hal::RelaxedCaptureMode<CUresult, CUstreamCaptureMode> {
  explicit RelaxedCaptureMode(const Functions& next)
      : hal::RelaxedCaptureMode<CUresult, CUstreamCaptureMode>(next.cuThreadExchangeStreamCaptureMode,
                                                               CU_STREAM_CAPTURE_MODE_RELAXED) {}
};

}  // namespace xsched::cuda
