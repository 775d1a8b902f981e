// A program beside this process, in a process group of its own. The group ends with its owner, and the
// program also when this process is killed. It never reads from the terminal.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace xsched::cli {

class BackgroundProgram {
 public:
  // What it prints goes to the file `output`. Throws CommandError if no process can be started; a program
  // that cannot be run ends with status 127.
  BackgroundProgram(const std::vector<std::string>& words, const std::string& output);
  ~BackgroundProgram() { End(); }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  pid_t pid() const { return pid_; }
  // Nothing while it runs; then its exit status, or minus the signal that ended it.
  std::optional<int> Status() const;
  // SIGTERM, and SIGKILL for what is left of the group.
  void End();

 private:
  pid_t pid_ = -1;
};

}  // namespace xsched::cli
