// Lets this thread make calls that a stream capture forbids. They invalidate no capture of the program, also
// not one of another thread.
#pragma once

namespace xsched::hal {

// `kExchange`: the member of Functions that exchanges the thread's mode; it may be null. `kRelaxed`: the mode
// that forbids nothing.
template <typename Functions, auto kExchange, auto kRelaxed>
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const Functions& next) : next_(next) { Exchange(); }
  ~RelaxedCaptureMode() { Exchange(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  void Exchange() {
    if (next_.*kExchange != nullptr) (next_.*kExchange)(&mode_);
  }

  const Functions& next_;
  decltype(kRelaxed) mode_ = kRelaxed;
};

}  // namespace xsched::hal
