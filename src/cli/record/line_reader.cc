#include "cli/record/line_reader.h"

#include <errno.h>
#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/input_file.h"

namespace xsched::cli {

bool LineReader::Next() {
  do {
    errno = 0;
    input_.getline(buffer_.data(), kLongest);
    if (input_.bad()) FailToRead(name_, errno);
    if (input_.gcount() == 0) return false;
    ++number_;
    if (input_.fail())
      throw CommandError(kExitFailed, fmt::format("{}: longer than a line of a recording", place()));
    length_ = static_cast<size_t>(input_.gcount()) - (is_open() ? 0 : 1);
  } while (length_ == 0 && number_ > 1);
  return true;
}

std::string LineReader::place() const { return fmt::format("{}:{}", name_, number_); }

}  // namespace xsched::cli
