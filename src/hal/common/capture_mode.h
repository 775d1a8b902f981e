// Calls that a program's stream capture forbids, made without disturbing it: not even a capture of another
// thread's is invalidated by what this thread does meanwhile.
#pragma once

namespace xsched::hal {

// `exchange`: the driver's function that exchanges the thread's mode; null: there is none. `relaxed`: the
// mode that forbids nothing.
template <typename Result, typename Mode>
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode(Result (*exchange)(Mode*), Mode relaxed) : exchange_(exchange), mode_(relaxed) {
    Exchange();
  }
  ~RelaxedCaptureMode() { Exchange(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  void Exchange() {
    if (exchange_ != nullptr) exchange_(&mode_);
  }

  Result (*exchange_)(Mode*);
  Mode mode_;
};

}  // namespace xsched::hal
