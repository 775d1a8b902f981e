// The output of XSCHED_VERBOSE=1: each message once per library.
#pragma once

#include <link.h>

namespace xsched::shim {

enum class Logged : int { kPassThrough, kBinding };

// True if the log is wanted, and this was not logged for `library` yet. Null: generated code.
bool IsFirst(Logged what, const link_map* library);

// To stderr, in one write. `format` is printf's.
[[gnu::format(printf, 1, 2)]] void Log(const char* format, ...);

// The library's path, or a description if it has none.
const char* NameForPeople(const link_map* library);

}  // namespace xsched::shim
