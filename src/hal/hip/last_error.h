// The runtime keeps each thread's last error, and some versions overwrite it with every call: what we ask on
// a program's thread must not look like an error of the program's.
#pragma once

#include "hal/hip/runtime.h"

namespace xsched::hip {

// An error that was there when this was made is the program's to find, and stays where the runtime lets it.
class KeepLastError {
 public:
  explicit KeepLastError(const Functions& next)
      : next_(next), clear_(next.hipPeekAtLastError == nullptr || next.hipPeekAtLastError() == hipSuccess) {}
  ~KeepLastError() {
    if (clear_ && next_.hipGetLastError != nullptr) next_.hipGetLastError();
  }
  KeepLastError(const KeepLastError&) = delete;
  KeepLastError& operator=(const KeepLastError&) = delete;

 private:
  const Functions& next_;
  bool clear_;
};

}  // namespace xsched::hip
