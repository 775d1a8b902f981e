#include "server/http/start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "base/fd.h"
#include "base/system_calls.h"
#include "server/http/loopback.h"

namespace xsched::server::http {
namespace {

constexpr int kListenFd = 3;
constexpr rlim_t kMaxDescriptors = 256;

// It is installed beside xserver.
std::string Program() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "xserver-http";
  if (failed || access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(program.string() + " is not installed");
  return program;
}

}  // namespace

void StartHttp(const Options& options, const std::string& socket) {
  const std::string program = Program();
  const std::string fd = std::to_string(kListenFd);
  const UniqueFd listening(ListenOnLoopback(*options.http_port));
  const pid_t server = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start xserver-http");
  if (child > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != server) _exit(0);
  // The scheduler's precedence is not for this.
  setpriority(PRIO_PROCESS, 0, 0);
  const rlimit limit{kMaxDescriptors, kMaxDescriptors};
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_DFL);
  if (listening.get() == kListenFd) {
    fcntl(kListenFd, F_SETFD, 0);
  } else {
    dup2(listening.get(), kListenFd);
  }
  CloseDescriptorsFrom(kListenFd + 1);
  execl(program.c_str(), "xserver-http", "--listen-fd", fd.c_str(), "--socket", socket.c_str(),
        "--admin-group", options.admin_group.c_str(), nullptr);
  _exit(127);
}

}  // namespace xsched::server::http
