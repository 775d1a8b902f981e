#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

// Through the descriptor: by its name, the file could be another one by now.
std::string PathOf(const UniqueFd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

bool IsOurRegularFile(const UniqueFd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

}  // namespace

std::ofstream OpenOutput(const std::string& path, bool is_named, mode_t mode) {
  // Without O_NONBLOCK, a FIFO would be waited for.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (is_named ? 0 : O_NOFOLLOW | O_NONBLOCK);
  const UniqueFd opened(open(path.c_str(), flags, mode));
  if (!is_named && (opened ? !IsOurRegularFile(opened) : errno == ELOOP || errno == ENXIO)) {
    throw CommandError(
        kExitFailed,
        fmt::format("{} is there, and is not a regular file of yours: name the file that is to be written "
                    "(--output)",
                    path));
  }
  std::ofstream file;
  if (opened) file.open(PathOf(opened), std::ios::trunc | std::ios::binary);
  if (!opened || !file)
    throw CommandError(ExitCodeOf(errno), fmt::format("{}: cannot be written: {}", path, strerror(errno)));
  return file;
}

}  // namespace xsched::cli
