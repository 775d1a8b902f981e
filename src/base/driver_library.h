// How HALs find the driver of a program that runs without a shim.
#pragma once

namespace xsched {

// The library that the user names in `variable`; it stays. Null: none is named, or it cannot be opened, which
// is one warning.
void* OpenNamedLibrary(const char* variable);

// The same; else what the process has loaded as `name`, never a second instance. Null: neither.
void* OpenDriverLibrary(const char* variable, const char* name);

// For a program that asks for scheduling (XSCHED_AUTO_XQUEUE=ON) and has not loaded the shim that does it:
// one warning. So it is where XSched 1.2's libraries were found by LD_LIBRARY_PATH alone. `platform`: as in
// the name of its shim, libshim<platform>.
void WarnIfNotIntercepted(const char* platform);

// Fills a table of pointers with the library's functions of these names; null: it has no such function.
// REQUIRES: `functions` has room for `count` pointers, and no lock is held under which the driver must not be
// called. The dynamic linker has locks of its own. Another thread may hold them while it runs a library's
// constructor, which may call the driver, and so us.
void FindFunctions(void* library, const char* const* names, int count, void* functions);

}  // namespace xsched
