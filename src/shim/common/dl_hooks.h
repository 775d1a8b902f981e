// dlsym and dlclose as programs call them, while a shim is preloaded; and the C library's own.
//
//   program -> dlsym (ours) -> LookUp, which each shim implements -> the shim's wrapper
//                           '-> jump to the C library's dlsym, if LookUp has nothing to say
//
// It is a jump, so that the C library still sees who called: RTLD_NEXT and RTLD_DEFAULT depend on that.
#pragma once

#include <cstdint>

namespace xsched::shim {

struct Lookup {
  void* address = nullptr;
  uint64_t answered = 0;  // 0: the C library is to answer. As wide as a register: read by the assembly.
};

// What `caller` (an address in its code) gets for `name`. Implemented by each shim; allocates nothing unless
// it answers.
Lookup LookUp(void* handle, const char* name, void* caller);

// A library has been closed: what was there may be replaced by another. Implemented by each shim.
void LibraryClosed();

// The C library's dlsym, called from the shim.
void* RealDlsym(void* handle, const char* name);

}  // namespace xsched::shim
