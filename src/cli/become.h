// Replaces this process by another program.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

// `program`: its path, or its name in PATH, and its arguments. Throws if there is no such program.
[[noreturn]] void Become(const std::vector<std::string>& program);

}  // namespace xsched::cli
