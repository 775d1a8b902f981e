// A program beside this process, in a process group of its own. The destructor ends the group. If this
// process is killed, the program ends as well. It never reads from the terminal.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace xsched::cli {

class BackgroundProgram {
 public:
  // Its output goes to the file `output`. Throws CommandError if no process can be started. A program that
  // cannot be run ends with status 127.
  BackgroundProgram(const std::vector<std::string>& words, const std::string& output);
  ~BackgroundProgram() { End(); }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  pid_t pid() const { return pid_; }
  // nullopt while it runs. Then its exit status, or minus the signal that ended it.
  std::optional<int> Status() const;
  // Sends SIGTERM, and later SIGKILL to the processes of the group that are left.
  void End();

 private:
  pid_t pid_ = -1;
};

}  // namespace xsched::cli
