#pragma once

#include <stddef.h>

#include "base/result.h"

namespace xsched::ipc {

// Whether memory that another process made can be mapped and written without a risk: an error if it is not a
// memfd of exactly `size` bytes, if its size can change or nobody can write it, or if an access may fail for
// lack of a huge page. An access beyond the end, or without a page, would kill the process that reads. what:
// for the error, such as "the segment".
Result<> CheckSealedMemory(int memfd, size_t size, const char* what);

}  // namespace xsched::ipc
