// Programs that look functions up at run time get the wrappers.
#pragma once

#include "shim/opencl/call.h"

namespace xsched::opencl {

// The index of a function that is wrapped or used here; -1: unknown, passes through.
int FunctionIndex(const char* name);

// The program looks up `name` in OpenCL and would get `found`. Returns the wrapper, if there is one.
void* WrapperFor(Route& route, const char* name, void* found);

// Looks up functions of extensions that the wrappers need and that are not known for the instance yet.
template <typename Ask>
void TakeOwnFunctions(Route& route, Ask&& ask) {
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
    void* wrapper = WrapperFor(call_.route(), name, *address);
    if (wrapper == *address) return;
    TakeOwnFunctions(call_.route(), ask);
    *address = wrapper;
  }

 private:
  const Call& call_;
};

}  // namespace xsched::opencl
