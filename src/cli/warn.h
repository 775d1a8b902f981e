// What a command says beside its output.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace xsched::cli {

// One line on stderr.
inline void Warn(const std::string& text) { fmt::print(stderr, "xsched: {}\n", text); }

}  // namespace xsched::cli
