// What XSCHED_VERBOSE=1 prints: once per library that it is about.
#pragma once

#include <link.h>

namespace xsched::shim {

enum class Told : int { kPassThrough, kBinding };

// Verbose, and `library` has not been told of as this yet. Null: generated code.
bool FirstTold(Told what, const link_map* library);

// To stderr, in one write. `format` is printf's.
[[gnu::format(printf, 1, 2)]] void Tell(const char* format, ...);

// The library's path, or what else it is.
const char* NameForPeople(const link_map* library);

}  // namespace xsched::shim
