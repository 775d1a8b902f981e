// One call of one wrapped function, as its wrapper hands it to its scope.
#pragma once

#include "preempt/api/launch.h"
#include "shim/cuda/driver.h"

namespace xsched::cuda {

class Call {
 public:
  // `function`: its index in kFunctionNames. `site`: where the call returns to.
  Call(int function, const void* site) : next_(Driver()), function_(function), site_(site) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Not one that XSched makes, nor one from a command that the program submitted (XQueueSubmit): those are
  // counted already.
  bool is_the_programs() const { return !preempt::InsideXSched(); }
  const Functions& next() const { return next_; }
  int function() const { return function_; }
  const void* site() const { return site_; }

 private:
  const Functions& next_;
  const int function_;
  const void* const site_;
};

}  // namespace xsched::cuda
