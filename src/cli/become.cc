#include "cli/become.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

namespace xsched::cli {

void Become(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw CannotRun(program[0], errno);
}

CommandError CannotRun(const std::string& program, int error) {
  return {error == ENOENT ? kExitNoProgram : kExitCannotRun,
          fmt::format("cannot run {}: {}", program, strerror(error))};
}

}  // namespace xsched::cli
