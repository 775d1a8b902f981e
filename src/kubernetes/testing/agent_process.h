// A real xsched-kubernetes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace xsched::kubernetes::testing {

class AgentProcess {
 public:
  // `socket`: of the server.
  AgentProcess(const std::vector<std::string>& arguments, const std::string& socket);
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  void Signal(int signal) const;
  // Its exit status, or minus the signal that ended it; -1000: it still runs.
  int WaitForExit();
  std::string said() const;

 private:
  std::string log_;
  pid_t pid_ = -1;
};

}  // namespace xsched::kubernetes::testing
