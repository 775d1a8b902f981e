#include "server/http/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <stdexcept>
#include <vector>

#include "base/fd.h"
#include "base/system_calls.h"

namespace xsched::server::http {
namespace {

constexpr int kListenFd = 3;
constexpr rlim_t kMaxDescriptors = 256;

// It is installed beside xserver.
std::string PathOfProgram() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "xserver-http";
  if (failed || access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(program.string() + " is not installed");
  return program;
}

void AddIfSet(const char* option, const std::string& value, std::vector<std::string>& words) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

// As a shell reads it. Most need no quotes.
std::string ForShell(const std::string& word) {
  static const std::regex plain("[A-Za-z0-9/._-]+");
  if (std::regex_match(word, plain)) return word;
  return fmt::format("'{}'", std::regex_replace(word, std::regex("'"), R"('\'')"));
}

std::string CommandByHand(const std::vector<std::string>& words, const Address& address) {
  std::string command;
  for (const std::string& word : words) command += ForShell(word) + " ";
  return command + (address.path.empty() ? std::to_string(address.port) : ForShell(address.path));
}

std::string HowItEnded(int status) {
  return WIFSIGNALED(status) ? fmt::format("by signal {}", WTERMSIG(status))
                             : fmt::format("with status {}", WEXITSTATUS(status));
}

}  // namespace

Program StartHttp(const Options& options, const Address& address, Serve what, const std::string& socket) {
  const std::string program = PathOfProgram();
  std::vector<std::string> words = {"xserver-http", "--socket", socket};
  AddIfSet("--admin-group", options.admin_group, words);
  AddIfSet("--metrics-group", options.metrics_group, words);
  if (options.metrics_per_queue) words.emplace_back("--metrics-per-queue");
  if (what == Serve::kMetricsOnly) words.emplace_back("--metrics-only");
  const std::string by_hand = CommandByHand(words, address);
  words.insert(words.end(), {"--listen-fd", std::to_string(kListenFd)});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const UniqueFd listening(ListenAt(address, options.mode));
  const pid_t server = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start xserver-http");
  if (child > 0) return {child, by_hand};
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

void TakeEnded(std::vector<Program>& programs) {
  std::erase_if(programs, [](const Program& program) {
    int status = 0;
    if (waitpid(program.pid, &status, WNOHANG) != program.pid) return false;
    spdlog::error("xserver-http has ended {}; scheduling goes on. It starts again with xserver, or by: {}",
                  HowItEnded(status), program.command);
    return true;
  });
}

}  // namespace xsched::server::http
