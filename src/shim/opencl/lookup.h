// Programs that look functions up at run time get the wrappers.
#pragma once

#include <string.h>

#include "shim/opencl/call.h"

namespace xsched::opencl {

// The index of a function that is wrapped or used here; -1: unknown, passes through.
int FunctionIndex(const char* name);

// The program looks up `name` in OpenCL and would get `found`. Returns the wrapper, if there is one, and then
// the route that it takes.
void* WrapperFor(Route& route, const char* name, void* found, Route** with);

// Looks up the function that the wrapper of `name` calls as well, unless the route has it already. Only with
// this name: a route may have functions of several vendors, but these two must be of the same.
template <typename Ask>
void TakeOwnFunctions(Route& route, const char* name, Ask&& ask) {
  if (strcmp(name, "clEnqueueCommandBufferKHR") != 0) return;
  const int function = FunctionIndex("clGetCommandBufferInfoKHR");
  if (function < 0 || FunctionAt(route.next, function) != nullptr) return;
  preempt::ReentrancyGuard guard;
  if (void* found = ask("clGetCommandBufferInfoKHR")) RouteWith(route, function, found);
}

// The scope of clGetExtensionFunctionAddress and clGetExtensionFunctionAddressForPlatform.
class AddressLookup {
 public:
  explicit AddressLookup(const Call& call) : call_(call) {}

  template <typename Ask>
  void Finish(bool succeeded, const char* name, void** address, Ask&& ask) const {
    if (!succeeded || name == nullptr) return;
    Route* with = nullptr;
    void* wrapper = WrapperFor(call_.route(), name, *address, &with);
    if (wrapper == *address) return;
    TakeOwnFunctions(*with, name, ask);
    *address = wrapper;
  }

 private:
  const Call& call_;
};

}  // namespace xsched::opencl
