// dlsym itself is interposed by a preloaded shim; this is the C library's.
#pragma once

namespace xsched::shim {

using DlsymFunction = void* (*)(void* handle, const char* name);
DlsymFunction RealDlsym();

// The function `name` in the library that holds `address`, which is loaded already: never a second copy. Null: none.
void* InSameLibrary(void* address, const char* name);

}  // namespace xsched::shim
