// One call of a wrapped function. The wrapper passes it to the scope.
#pragma once

#include "preempt/api/launch.h"
#include "shim/opencl/routes.h"

namespace xsched::opencl {

class Call {
 public:
  explicit Call(Route& route) : route_(route) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // False for calls that XSched makes, or that another call of the program makes.
  bool is_the_programs() const { return !preempt::InsideXSched(); }
  const Functions& next() const { return route_.next; }
  Route& route() const { return route_; }

 private:
  Route& route_;
};

// Success of an OpenCL function, which returns an error code or an object.
inline bool Succeeded(cl_int result) { return result == CL_SUCCESS; }
inline bool Succeeded(const void* result) { return result != nullptr; }

}  // namespace xsched::opencl
