// The scope of a call that may wait inside the driver for everything. It could wait for a command behind a
// gate, and the thread that opens the gate could wait for this call. So nothing is held during the call. Only
// the driver knows which context or device the call concerns, so this applies to the whole process.
#pragma once

#include "preempt/api/launch.h"

namespace xsched::shim {

template <typename Platform>
class Barrier {
 public:
  explicit Barrier(const typename Platform::Call&) {}
  void Finish(typename Platform::Result) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::shim
