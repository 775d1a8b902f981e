#include "cli/programs/background_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/fd.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"

namespace xsched::cli {
namespace {

constexpr std::chrono::milliseconds kGrace{2000};
constexpr std::chrono::milliseconds kPoll{10};

[[noreturn]] void Become(std::vector<char*>& arguments, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent ended before the signal was set
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  UniqueFd file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) throw CannotWrite(output, errno);
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw CommandError(kExitFailed, "cannot start a process");
  if (pid_ == 0) Become(arguments, file.get(), parent);
  setpgid(pid_, pid_);  // here as well: End may be called before the child calls it
}

std::optional<int> BackgroundProgram::Status() const {
  siginfo_t info{};
  // It is not reaped before End, so that its process group's number is not reused.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return {};
  return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

void BackgroundProgram::End() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGTERM);
  auto patience = std::chrono::steady_clock::now() + kGrace;
  while (!Status() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(kPoll);
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace xsched::cli
