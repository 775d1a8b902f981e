// The file that a command writes.
#pragma once

#include <fstream>
#include <string>

namespace xsched::cli {

// Empties the file. Throws CommandError. Without a name by the user (`is_named`), it is a file of the current
// folder, which may belong to somebody else, for example if an administrator looks at a user's programs. A
// symbolic link there would lead to a file of the administrator, so it is refused.
std::ofstream OpenOutput(const std::string& path, bool is_named);

}  // namespace xsched::cli
