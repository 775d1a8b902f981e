// Calls that a program's stream capture forbids, made without disturbing it: not even a capture of another
// thread's is invalidated by what this thread does meanwhile.
#pragma once

#include "cuda/functions.h"

namespace xsched::cuda {

class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const Functions& next) : next_(next) { Exchange(); }
  ~RelaxedCaptureMode() { Exchange(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  void Exchange() {
    if (next_.cuThreadExchangeStreamCaptureMode != nullptr) next_.cuThreadExchangeStreamCaptureMode(&mode_);
  }

  const Functions& next_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace xsched::cuda
