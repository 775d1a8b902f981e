#include "platforms/cuda/shared_context.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"
#include "ipc/client.h"
#include "platforms/cuda/mps_keeper.h"

namespace xsched::cli::cuda {
namespace {

constexpr const char* kPipeFolder = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kUsualSocket = "/tmp/nvidia-mps/control";  // of a service for all users
constexpr const char* kLogFolder = "CUDA_MPS_LOG_DIRECTORY";
constexpr std::chrono::milliseconds kPoll{20};
// More than a keeper needs to end the service.
constexpr std::chrono::seconds kEnding{20};
constexpr std::chrono::seconds kStarting{5};

std::string ServiceFolder() {
  const std::filesystem::path folder = std::filesystem::path(ipc::UserServerSocket().text).parent_path();
  if (Result<> safe = ipc::CheckUserServerFolder(); !safe) throw CommandError(kExitFailed, safe.error().text());
  const std::filesystem::path ours = folder / "mps";
  for (const std::filesystem::path& made : {folder, ours}) {
    if (mkdir(made.c_str(), 0700) != 0 && errno != EEXIST)
      throw CommandError(kExitFailed, fmt::format("cannot make {}: {}", made.native(), strerror(errno)));
  }
  return ours;
}

// Calls done() until it returns true, or the time is over. Returns what it returned last.
template <typename Done>
bool WaitUntil(std::chrono::seconds limit, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

// Starts a keeper, which ends at once if there is one. It outlives this process, and its terminal.
void StartKeeper(const Mps& mps) {
  const pid_t child = fork();
  if (child < 0) throw CommandError(kExitFailed, "cannot start a process");
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    const int null = open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    close_range(3, ~0u, 0);
    Keep(mps);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

}  // namespace

std::vector<Variable> ShareContext() {
  if (!CurrentVariable(kPipeFolder).empty() || std::filesystem::exists(kUsualSocket)) return {};
  const std::optional<std::string> control = FindInPath(kMpsControl);
  if (!control) {
    throw CommandError(kExitFailed, fmt::format("{} is not in PATH (it comes with NVIDIA's driver)", kMpsControl));
  }
  const std::string folder = ServiceFolder();
  const std::vector<Variable> variables = {{kPipeFolder, folder}, {kLogFolder, folder}};
  const Mps mps{*control, folder, variables};

  UniqueFd user(open(mps.UsersFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // A keeper that ends the service has locked the file against users.
  if (!user || !WaitUntil(kEnding, [&] { return flock(user.get(), LOCK_SH | LOCK_NB) == 0; })) {
    throw CommandError(kExitFailed, fmt::format("cannot lock {}: {}", mps.UsersFile(), strerror(errno)));
  }
  StartKeeper(mps);
  if (!WaitUntil(kStarting, [&] { return mps.Answers(); })) {
    throw CommandError(kExitFailed, fmt::format("{} does not start the service: see {}/control.log", *control, folder));
  }
  // The program keeps the lock for as long as it lives, and so does what it starts.
  fcntl(user.Release(), F_SETFD, 0);
  return variables;
}

}  // namespace xsched::cli::cuda
