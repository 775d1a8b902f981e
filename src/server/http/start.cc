#include "server/http/start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/fd.h"
#include "base/system_calls.h"

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

void AddIfSet(const char* option, const std::string& value, std::vector<std::string>& words) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

}  // namespace

void StartHttp(const Options& options, const Address& address, Serve what, const std::string& socket) {
  const std::string program = Program();
  std::vector<std::string> words = {"xserver-http", "--listen-fd", std::to_string(kListenFd), "--socket",
                                    socket};
  AddIfSet("--admin-group", options.admin_group, words);
  AddIfSet("--metrics-group", options.metrics_group, words);
  if (what == Serve::kMetricsOnly) words.emplace_back("--metrics-only");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const UniqueFd listening(ListenAt(address, options.mode));
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
  CloseDescriptors(kListenFd + 1);
  execv(program.c_str(), arguments.data());
  _exit(127);
}

}  // namespace xsched::server::http
