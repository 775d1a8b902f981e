// Whether a stream captures.
#pragma once

#include "hal/hip/runtime.h"

namespace xsched::hip {

// When in doubt, it does: an error is that of the null stream while a stream that it waits for captures. Not
// if its capture is invalid: in some versions the stream stays in this state also after the end of the
// capture, and runs what it gets.
inline bool AskWhetherCapturing(const Functions& next, hipStream_t stream) {
  if (next.hipStreamIsCapturing == nullptr) return false;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return next.hipStreamIsCapturing(stream, &status) != hipSuccess || status == hipStreamCaptureStatusActive;
}

}  // namespace xsched::hip
