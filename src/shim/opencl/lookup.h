// Programs that look functions up at run time get the wrappers.
#pragma once

#include "preempt/api/launch.h"
#include "shim/opencl/routes.h"

namespace xsched::opencl {

// The index of a function that is wrapped or used here; -1: unknown, passes through.
int FunctionIndex(const char* name);

// The program asked OpenCL for `name` and would get `found`: the wrapper, if there is one.
void* WrapperFor(Route& route, const char* name, void* found);

// Functions of extensions that the wrappers need and that the instance has not been asked for yet.
template <typename Ask>
void TakeOwnFunctions(Route& route, Ask&& ask) {
  const int function = FunctionIndex("clGetCommandBufferInfoKHR");
  if (function < 0 || FunctionAt(route.next, function) != nullptr) return;
  preempt::ReentrancyGuard guard;
  if (void* found = ask("clGetCommandBufferInfoKHR")) RouteWith(route, function, found);
}

template <typename Ask>
void* WrapLookedUp(Route& route, const char* name, void* found, Ask&& ask) {
  if (found == nullptr || name == nullptr) return found;
  void* wrapper = WrapperFor(route, name, found);
  if (wrapper != found) TakeOwnFunctions(route, ask);
  return wrapper;
}

}  // namespace xsched::opencl
