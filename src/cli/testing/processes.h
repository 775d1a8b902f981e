// Processes that are not our children, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace xsched::cli::testing {

// The number that a process wrote into a file; 0: not yet.
inline pid_t PidIn(const std::string& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

// One that has ended and that nobody has reaped does not run.
inline bool IsRunning(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name;
  char state = 'X';
  stat >> number >> name >> state;
  return pid > 0 && state != 'X' && state != 'Z';
}

}  // namespace xsched::cli::testing
