// One call of one wrapped function, as its wrapper hands it to its scope.
#pragma once

#include "preempt/api/launch.h"
#include "shim/opencl/routes.h"

namespace xsched::opencl {

class Call {
 public:
  explicit Call(const Route& route) : next_(route.next) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Not one that XSched, or another call of the program's, makes in passing.
  bool is_the_programs() const { return !preempt::InsideXSched(); }
  const Functions& next() const { return next_; }

 private:
  const Functions& next_;
};

// What a function of OpenCL returned: an error code, or an object.
inline bool Succeeded(cl_int result) { return result == CL_SUCCESS; }
inline bool Succeeded(const void* result) { return result != nullptr; }

}  // namespace xsched::opencl
