// One call of a wrapped function. The wrapper passes it to the scope.
#pragma once

#include "preempt/api/launch.h"
#include "shim/cuda/current_context.h"
#include "shim/cuda/driver.h"

namespace xsched::cuda {

class Call {
 public:
  // `function`: its index in kFunctionNames. `site`: the return address of the call.
  Call(int function, const void* site) : next_(Driver()), function_(function), site_(site) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // False for calls that XSched makes, and for calls from a command that the program submitted
  // (XQueueSubmit), which is counted already.
  bool is_the_programs() const { return !preempt::InsideXSched(); }
  const Functions& next() const { return next_; }
  int function() const { return function_; }
  const void* site() const { return site_; }
  // The calling thread's current context; null: none.
  CUcontext context() const { return KnownContext(); }

 private:
  const Functions& next_;
  const int function_;
  const void* const site_;
};

}  // namespace xsched::cuda
