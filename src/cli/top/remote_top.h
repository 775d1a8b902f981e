// The queues of another machine, by ssh: with the user's own rights there, and without an open port of ours.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

// The command for ssh that runs `xsched top` on `host` with these arguments. `terminal`: it is shown on a
// screen.
inline std::vector<std::string> RemoteTop(const std::string& host, bool terminal,
                                          const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"ssh"};
  if (terminal) command.emplace_back("-t");
  command.insert(command.end(), {"--", host, "xsched", "top"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace xsched::cli
