#include "kubernetes/testing/agent_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"

namespace xsched::kubernetes::testing {

AgentProcess::AgentProcess(const std::vector<std::string>& arguments, const std::string& socket)
    : log_(socket + ".agent." + std::to_string(reinterpret_cast<uintptr_t>(this))) {
  std::vector<std::string> words = {XSCHED_KUBERNETES_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int errors = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string variable = "XSCHED_SOCKET=" + socket;
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(errors, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    putenv(const_cast<char*>(variable.c_str()));
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(errors);
}

AgentProcess::~AgentProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void AgentProcess::Signal(int signal) const { kill(pid_, signal); }

int AgentProcess::WaitForExit() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    SleepFor(std::chrono::milliseconds(20));
  }
  return -1000;
}

std::string AgentProcess::said() const {
  std::ifstream file(log_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace xsched::kubernetes::testing
