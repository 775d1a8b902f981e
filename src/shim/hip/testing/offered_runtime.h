// What tests ask of the stand-in for the HIP runtime that the shim is tested with, beside what
// hal/hip/testing/fake_runtime.h has. They look the functions up in the instance that they loaded.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The instance is to offer its dispatch table with the first function that is called, as its `instance`; it
// has the first `length` functions of ours, or more than we know. 0, as it is by default: it offers none.
void FakeOfferTable(uint64_t length, uint64_t instance);
// It is offered once more, as to a profiler that is attached.
void FakeOfferAgain(void);
// What it was answered last.
int FakeOfferResult(void);
// The entry of the table; null: it has none of that number.
void* FakeTableEntry(uint64_t number);
// Is the compiler's table, which is offered as well, as it was?
int FakeCompilerTableIsWhole(void);

// How many calls of the exported function got to the runtime's own.
int FakeCallsOf(const char* symbol);
// The exported function, as a library is linked to it that we know nothing of.
void* FakeExported(const char* symbol);

// A variable of a program's, that its constructor registers: only this instance knows it.
void FakeRegisterVariable(const void* variable);

#ifdef __cplusplus
}
#endif
