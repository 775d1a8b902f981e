// This process becomes another program.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

// `program`: its name, looked for in PATH, or its path, and its arguments. Throws if there is no such
// program.
[[noreturn]] void Become(const std::vector<std::string>& program);

}  // namespace xsched::cli
