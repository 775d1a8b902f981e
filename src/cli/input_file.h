// The file that a command reads.
#pragma once

#include <fstream>
#include <string>

namespace xsched::cli {

// Throws CommandError, also if it is a folder.
std::ifstream OpenInput(const std::string& path);
// Throws it. `error`: why, as errno has it.
[[noreturn]] void FailToRead(const std::string& path, int error);

}  // namespace xsched::cli
