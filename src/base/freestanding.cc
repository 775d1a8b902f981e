// The few symbols of libstdc++ that compiled C++ needs even without exceptions and RTTI. They are linked into
// the libraries for foreign processes, and hidden there by their version scripts.
#include <stdlib.h>

#include <cstddef>
#include <new>

// Returns null if memory runs out. Code for foreign processes uses new (std::nothrow) and checks the result.
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

// Unoptimized code that takes a part of a std::string_view names this. It is called for a position past the
// end only, which no caller of ours gives.
namespace std {
void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }
// Some distributions build their packages with the assertions of libstdc++ on, whose failure calls this.
[[noreturn]] void __glibcxx_assert_fail(const char*, int, const char*, const char*) noexcept {
  __builtin_trap();
}
}  // namespace std
