// The file that a command writes.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace xsched::cli {

// Who may read a file that is made: what only some may see, or what everybody may (less the umask).
inline constexpr mode_t kOwnerOnly = 0600;
inline constexpr mode_t kEverybody = 0644;

// Empties the file. Throws CommandError. Without a name by the user (`is_named`), it is a file of the current
// folder, which may belong to somebody else, for example if an administrator looks at a user's programs. So
// it is a regular file of this user, and neither a symbolic link nor anything that another one has put there.
std::ofstream OpenOutput(const std::string& path, bool is_named, mode_t mode);

}  // namespace xsched::cli
