// What XSCHED_VERBOSE=1 prints: once per library that it is about.
#pragma once

#include <link.h>

namespace xsched::shim {

enum class Logged : int { kPassThrough, kBinding };

// Is the log wanted, and this not logged of `library` so far? Null: generated code.
bool IsFirst(Logged what, const link_map* library);

// To stderr, in one write. `format` is printf's.
[[gnu::format(printf, 1, 2)]] void Log(const char* format, ...);

// The library's path, or what else it is.
const char* NameForPeople(const link_map* library);

}  // namespace xsched::shim
