// Intercepts dlsym and dlclose while a shim is preloaded, and calls the C library's own.
//
//   program -> dlsym (ours) -> LookUp, which each shim implements -> the shim's wrapper
//                           '-> jump to the C library's dlsym, if LookUp has no answer
//
// It is a jump, so that the C library still sees the caller's address: RTLD_NEXT and RTLD_DEFAULT depend on
// it.
#pragma once

#include <cstdint>

namespace xsched::shim {

struct Lookup {
  void* address = nullptr;
  uint64_t answered = 0;  // 0: the C library answers. The assembly reads it as a whole register.
};

// What `caller` (an address in its code) gets for `name`. Implemented by each shim. Allocates memory only if
// it answers.
Lookup LookUp(void* handle, const char* name, void* caller);

// A library was unloaded, and another one may get its addresses. Implemented by each shim.
void LibraryUnloaded();

// The C library's dlsym, called from the shim.
void* RealDlsym(void* handle, const char* name);
// … and what it finds for `caller` without this library, which comes first in the global scope and has a
// function `ours` of that name (null: none).
void* DlsymBehind(const void* ours, void* handle, const char* name, const void* caller);

}  // namespace xsched::shim
