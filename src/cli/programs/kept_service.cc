#include "cli/programs/kept_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "cli/exit_codes.h"
#include "cli/programs/detached.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBetweenLooks{20};
constexpr seconds kStarting{5};
constexpr seconds kEnding{10};
// Programs often follow each other.
constexpr int kLooksWithoutUsers = 4;
constexpr milliseconds kLook{500};
// To ask the service may cost a process.
constexpr int kLooksPerQuestion = 10;

// Calls done() until it returns true, or the time is over. Returns what it returned last.
template <typename Done>
bool WaitUntil(seconds limit, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

UniqueFd OpenLock(const std::string& file) {
  return UniqueFd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}
std::string UsersFile(const std::string& folder) { return folder + "/users"; }
std::string KeeperFile(const std::string& folder) { return folder + "/keeper"; }

// Returns when nobody uses the service and it has ended, or at once if another process keeps it.
void Keep(const Service& service, const std::string& folder) {
  UniqueFd keeper = OpenLock(KeeperFile(folder));
  const UniqueFd users = OpenLock(UsersFile(folder));
  if (!keeper || !users || flock(keeper.get(), LOCK_EX | LOCK_NB) != 0) return;
  int without_users = 0;
  for (int look = 0;; ++look) {
    // If it has ended by itself, the next programs need it.
    if (look % kLooksPerQuestion == 0 && !service.Answers()) service.Start();
    std::this_thread::sleep_for(kLook);
    if (flock(users.get(), LOCK_EX | LOCK_NB) != 0) {
      without_users = 0;
      continue;
    }
    if (++without_users >= kLooksWithoutUsers && !service.HasPrograms()) {
      service.End();
      WaitUntil(kEnding, [&] { return !service.Answers(); });
      // New programs wait until `users` is unlocked. Then the next keeper can have its lock.
      keeper.Reset();
      return;
    }
    flock(users.get(), LOCK_UN);
  }
}

// For this user alone.
void MakeFolder(const std::filesystem::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw CommandError(kExitFailed, fmt::format("cannot make {}: {}", folder.native(), strerror(errno)));
}

}  // namespace

void UseService(const Service& service, const std::string& folder) {
  MakeFolder(std::filesystem::path(folder).parent_path());
  MakeFolder(folder);
  UniqueFd user = OpenLock(UsersFile(folder));
  // A keeper that ends the service has the lock for itself.
  if (!user || !WaitUntil(2 * kEnding, [&] { return flock(user.get(), LOCK_SH | LOCK_NB) == 0; }))
    throw CommandError(kExitFailed, fmt::format("cannot lock {}: {}", UsersFile(folder), strerror(errno)));
  // It ends at once if there is a keeper.
  if (!RunDetached([&] { Keep(service, folder); })) throw CommandError(kExitFailed, "cannot start a process");
  if (!WaitUntil(kStarting, [&] { return service.Answers(); }))
    throw CommandError(kExitFailed, fmt::format("the service does not start (its files are in {})", folder));
  fcntl(user.Release(), F_SETFD, 0);
}

}  // namespace xsched::cli
