#include "cli/input_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>

#include "cli/exit_codes.h"

namespace xsched::cli {

std::ifstream OpenInput(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file) file.peek();  // a folder can be opened, but not read
  if (file.eof()) file.clear();
  if (!file) FailToRead(path, errno);
  return file;
}

void FailToRead(const std::string& path, int error) {
  throw CommandError(ExitCodeOf(error), fmt::format("{}: cannot be read: {}", path, strerror(error)));
}

}  // namespace xsched::cli
