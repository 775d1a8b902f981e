// top on the terminal: keys, colors, and what changes by itself.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace xsched::cli {

// Until a key ends it, or after `count` looks (0: never). Throws CommandError; the terminal is as before
// then.
void ShowTopOnScreen(Duration delay, int64_t count);

}  // namespace xsched::cli
