// The few symbols of libstdc++ that compiled C++ needs even without exceptions and RTTI. They are linked into
// the libraries for foreign processes, and hidden there by their version scripts.
#include <stdlib.h>

#include <cstddef>
#include <new>

// Out of memory yields null; code for foreign processes uses new (std::nothrow) and looks at the result.
void* operator new(size_t size) { return malloc(size); }
void* operator new[](size_t size) { return malloc(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return malloc(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return malloc(size); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
const std::nothrow_t std::nothrow{};

// Vtables of abstract classes name this; no such function is ever called.
extern "C" [[noreturn]] void __cxa_pure_virtual() { __builtin_trap(); }
