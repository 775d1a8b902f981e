// The hooks of dlsym and dlclose, in a library as a shim is one: it answers for two names.
#pragma once

extern "C" {
#pragma GCC visibility push(default)

// What dlsym gives for "HookedName", which nobody defines, is the address of HookedAnswer.
void HookedAnswer();
// Defined here alone: who asks for the next one after itself finds it if, to the C library, it is the caller.
void HookedNext();

const void* HookedCaller();  // whoever asked for "HookedName" last
int HookedLibrariesClosed();

#pragma GCC visibility pop
}
