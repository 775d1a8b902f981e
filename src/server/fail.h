// The end of a call of the kernel without which the server cannot work.
#pragma once

#include <errno.h>
#include <fmt/format.h>
#include <string.h>

#include <stdexcept>
#include <string>

namespace xsched::server {

// Throws `what` with errno in words.
[[noreturn]] inline void Fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, strerror(errno)));
}

}  // namespace xsched::server
