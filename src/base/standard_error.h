// Writes to standard error in other people's processes, which must not suffer from it: it may be a pipe or a
// socket that nobody reads.
#pragma once

#include <stddef.h>

namespace xsched {

// One write(2). Never waits, and never raises SIGPIPE. What cannot be written is lost. Keeps errno.
void WriteToStandardError(const char* text, size_t size);

}  // namespace xsched
