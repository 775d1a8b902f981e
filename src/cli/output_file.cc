#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/fd.h"
#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

// Through the descriptor: by its name, the file could be another one by now.
std::string PathOfUnnamed(const UniqueFd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

}  // namespace

std::ofstream OpenOutput(const std::string& path, bool is_named) {
  constexpr mode_t kMode = 0666;  // less the umask, as that of a stream's file
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd unnamed(is_named ? -1 : open(path.c_str(), kFlags, kMode));
  if (!is_named && !unnamed && errno == ELOOP) {
    throw CommandError(
        kExitFailed,
        fmt::format("{} is a symbolic link: name the file that is to be written (--output)", path));
  }
  std::ofstream file(unnamed ? PathOfUnnamed(unnamed) : path, std::ios::trunc | std::ios::binary);
  if (!file || (!is_named && !unnamed))
    throw CommandError(kExitFailed, fmt::format("{}: cannot be written", path));
  return file;
}

}  // namespace xsched::cli
