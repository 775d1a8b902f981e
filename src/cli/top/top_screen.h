// top on the terminal: keys, colors, and what changes by itself.
#pragma once

#include <cstdint>

namespace xsched::cli {

// Until a key ends it, or after `count` looks (0: never). Throws CommandError; the terminal is as before
// then.
void ShowTopOnScreen(double delay_s, int64_t count);

}  // namespace xsched::cli
