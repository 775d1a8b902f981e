// How a test controls the shim's stand-in for the HIP runtime, in addition to hal/hip/testing/fake_runtime.h.
// Tests look the functions up in the instance that they loaded.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// At the first call of a function, the instance offers its dispatch table as `instance`. The table has the
// first `length` of our functions, or more than we know. 0 (the default): it offers none.
void FakeOfferTable(uint64_t length, uint64_t instance);
// The version of HIP that the table is offered as: 70200 is 7.2. By default newer than any that is known.
void FakeOfferVersion(uint64_t version);
// Offers it once more, as to a profiler that is attached later.
void FakeOfferAgain(void);
// The last answer to an offer.
int FakeOfferResult(void);
// The entry of the table; null: it has none of that number.
void* FakeTableEntry(uint64_t number);
// True if the compiler's table, which is offered as well, is unchanged.
int FakeCompilerTableIsWhole(void);

// The number of calls of the exported function that reached the runtime's own.
int FakeCallsOf(const char* symbol);
// The exported function, as an unknown library is bound to it.
void* FakeExported(const char* symbol);

// Registers a variable of a program, as its constructor does. Only this instance knows it.
void FakeRegisterVariable(const void* variable);

#ifdef __cplusplus
}
#endif
