// Programs that look functions up at run time get the wrappers.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/cuda/call.h"

namespace xsched::cuda {

// The index of an exported function that is wrapped; -1: it is not.
int WrappedFunction(const char* name);

// The index of the wrapper with the ABI that cuGetProcAddress returns for `symbol` and CUDA `version`, as far
// as our headers know it; -1: none.
struct KnownVersion {
  int function = -1;
  int version = 0;
};
KnownVersion FindVersion(const char* symbol, int version, bool per_thread);

// The number of looked-up functions without a wrapper that XSched does not know as harmless.
extern std::atomic<uint64_t> unknown_functions;

// The scope of cuGetProcAddress.
class AddressLookup {
 public:
  explicit AddressLookup(const Call&) {}
  void Finish(CUresult result, const char* symbol, void** address, int version, cuuint64_t flags);
};

}  // namespace xsched::cuda
