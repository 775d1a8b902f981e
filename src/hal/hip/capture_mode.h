// hal/common/capture_mode.h for HIP.
#pragma once

#include "hal/common/capture_mode.h"
#include "hal/hip/runtime.h"

namespace xsched::hip {

struct RelaxedCaptureMode : hal::RelaxedCaptureMode<hipError_t, hipStreamCaptureMode> {
  explicit RelaxedCaptureMode(const Functions& next)
      : hal::RelaxedCaptureMode<hipError_t, hipStreamCaptureMode>(next.hipThreadExchangeStreamCaptureMode,
                                                                  hipStreamCaptureModeRelaxed) {}
};

}  // namespace xsched::hip
