// Replaces this process by another program.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_codes.h"

namespace xsched::cli {

// `program`: its path, or its name in PATH, and its arguments. Throws if there is no such program.
[[noreturn]] void Become(const std::vector<std::string>& program);

// Why there is no such program: `error` is an errno.
CommandError CannotRun(const std::string& program, int error);

}  // namespace xsched::cli
