// Programs that look functions up at run time get wrappers. These call the runtime instance in which the
// program looked.
#pragma once

#include "shim/hip/call.h"

namespace xsched::hip {

// The index of an exported function that is wrapped; -1: it is not.
int WrappedFunction(const char* symbol);

// The scope of hipGetProcAddress and hipGetDriverEntryPoint.
class AddressLookup {
 public:
  explicit AddressLookup(const Call& call) : call_(call) {}
  void Finish(hipError_t result, const char* symbol, void** address) const;

 private:
  const Call& call_;
};

}  // namespace xsched::hip
