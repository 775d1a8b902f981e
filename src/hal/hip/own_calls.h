// The scopes of XSched's own calls of the runtime, on any thread. They are no calls of the program, leave its
// last error, and invalidate no capture.
#pragma once

#include "hal/hip/capture_mode.h"
#include "hal/hip/device.h"
#include "hal/hip/last_error.h"
#include "preempt/api/launch.h"

namespace xsched::hip {

class OwnCalls {
 public:
  explicit OwnCalls(const Functions& next) : keep_(next), relaxed_(next) {}

 private:
  preempt::ReentrancyGuard guard_;
  KeepLastError keep_;
  RelaxedCaptureMode relaxed_;
};

// With `device` as the current one, if that is possible.
class OwnCallsOn {
 public:
  OwnCallsOn(const Functions& next, int device) : ours_(next), device_(next, device) {}

  explicit operator bool() const { return static_cast<bool>(device_); }

 private:
  OwnCalls ours_;
  WithDevice device_;
};

}  // namespace xsched::hip
