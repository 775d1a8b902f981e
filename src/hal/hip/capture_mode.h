// Calls that a program's stream capture forbids, made without disturbing it: not even a capture of another
// thread's is invalidated by what this thread does meanwhile.
#pragma once

#include "hal/hip/runtime.h"

namespace xsched::hip {

class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const Functions& next) : next_(next) { Exchange(); }
  ~RelaxedCaptureMode() { Exchange(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  void Exchange() {
    if (next_.hipThreadExchangeStreamCaptureMode != nullptr) next_.hipThreadExchangeStreamCaptureMode(&mode_);
  }

  const Functions& next_;
  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
};

}  // namespace xsched::hip
