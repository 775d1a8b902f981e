// Keeps a thread's last error in the runtime. Some versions overwrite it with every call, and our own calls
// on the program's thread must not look like errors of the program.
#pragma once

#include "hal/hip/runtime.h"

namespace xsched::hip {

// An error from before belongs to the program, and is kept if the runtime allows it.
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
