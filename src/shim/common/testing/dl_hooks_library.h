// The hooks of dlsym and dlclose in a library that is built like a shim. It answers for two names.
#pragma once

extern "C" {
#pragma GCC visibility push(default)

// For "HookedName", which no library defines, dlsym returns the address of HookedAnswer.
void HookedAnswer();
// Defined only here. A program that looks it up with RTLD_NEXT finds it if the C library takes the program
// for the caller.
void HookedNext();

const void* HookedCaller();  // the last caller that looked up "HookedName"
int HookedLibrariesUnloaded();

#pragma GCC visibility pop
}
