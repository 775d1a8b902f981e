#include "server/testing/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server::testing {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "xsched-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder for tests");
  // Other users' clients must reach the socket in it.
  std::filesystem::permissions(name, std::filesystem::perms(0755));
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ServerProcess::ServerProcess(const std::string& program, const std::string& socket,
                             std::vector<std::string> arguments, ServerLimits limits)
    : socket_(socket), errors_path_(socket + ".errors") {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  UniqueFd ready(ends[0]);
  UniqueFd its_end(ends[1]);
  constexpr int kReadyFd = 3;
  arguments.insert(arguments.begin(), {program, "--socket", socket, "--ready-fd", std::to_string(kReadyFd)});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int errors = open(errors_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(limits.errors_fd >= 0 ? limits.errors_fd : errors, STDERR_FILENO);
    if (its_end.get() == kReadyFd) {
      fcntl(kReadyFd, F_SETFD, 0);
    } else {
      dup2(its_end.get(), kReadyFd);
    }
    if (limits.descriptors != 0) {
      rlimit limit{static_cast<rlim_t>(limits.descriptors), static_cast<rlim_t>(limits.descriptors)};
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limits.address_space != 0) {
      rlimit limit{static_cast<rlim_t>(limits.address_space), static_cast<rlim_t>(limits.address_space)};
      setrlimit(RLIMIT_AS, &limit);
    }
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  its_end.Reset();
  char byte;
  ready_ = read(ready.get(), &byte, 1) == 1;
}

ServerProcess::~ServerProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

ipc::SocketPath ServerProcess::socket() const {
  ipc::SocketPath path{};
  socket_.copy(path.text, sizeof path.text - 1);
  return path;
}

void ServerProcess::Signal(int signal) const { kill(pid_, signal); }

int ServerProcess::WaitForExit(int timeout_ms) {
  TimePoint deadline = MonotonicClock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    if (MonotonicClock::now() > deadline) return -1000;
    usleep(1000);
  }
}

std::string ServerProcess::errors() const {
  std::ifstream file(errors_path_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

long ServerProcess::resident_kb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
  }
  return -1;
}

int ServerProcess::descriptors() const {
  int count = 0;
  for ([[maybe_unused]] auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
    ++count;
  }
  return count;
}

long ServerProcess::cpu_ticks() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return user + system;
}

double ServerProcess::cpu_seconds() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/schedstat");
  double nanoseconds = 0;
  file >> nanoseconds;
  return nanoseconds / 1e9;
}

}  // namespace xsched::server::testing
