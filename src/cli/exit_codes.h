// The meaning of xsched's exit status. `xsched run` becomes the program, and has the program's status.
#pragma once

#include <errno.h>

#include <stdexcept>
#include <string>

namespace xsched::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitNoServer = 3,
  kExitNotPermitted = 4,
  kExitCannotRun = 126,
  kExitNoProgram = 127,
};

// If a file cannot be read or written. `error`: why, as errno has it.
inline ExitCode ExitCodeOf(int error) {
  return error == EACCES || error == EROFS || error == EPERM ? kExitNotPermitted : kExitFailed;
}

// Ends a command with one line on stderr and this status.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode exit_code, const std::string& text) : std::runtime_error(text), code(exit_code) {}
  const ExitCode code;
};

}  // namespace xsched::cli
