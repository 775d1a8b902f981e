// Around a call that may wait inside the driver for everything. What it waits for could be behind a gate, and
// what would open the gate behind this call: nothing is held meanwhile. Whose context or device the call is
// about, only the driver knows: so for all of the process.
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
