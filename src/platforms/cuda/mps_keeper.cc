#include "platforms/cuda/mps_keeper.h"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "cli/doctor/child_process.h"

namespace xsched::cli::cuda {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{500};
// A look at the service itself is a process: it comes with every tenth look at its users.
constexpr int kLooksPerAnswer = 10;
// Programs often follow each other.
constexpr int kLooksWithoutUsers = 4;
constexpr milliseconds kEndPoll{100};
constexpr int kEndPolls = 100;

// What only a running service writes before its answer, so that an empty answer is known from none.
constexpr const char* kAnswered = "answered";

bool IsNumber(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

// Ends the service, if no program uses it. REQUIRES: no new one can come.
bool End(const Mps& mps) {
  if (mps.HasPrograms()) return false;
  mps.Ask("quit");
  for (int i = 0; i < kEndPolls && mps.Answers(); ++i) std::this_thread::sleep_for(kEndPoll);
  return true;
}

}  // namespace

std::string Mps::Ask(const std::string& command) const {
  // Its exit status says whether the service runs.
  const std::string script = "answer=$(echo \"$2\" | \"$1\") && echo " + std::string(kAnswered) + " $answer";
  const std::string answer = OutputOf({"/bin/sh", "-c", script, "sh", control, command}, variables);
  return answer.starts_with(kAnswered) ? answer : "";
}

// The service outlives the shell, and so it must not have the pipe of the shell's output. The shell has it until
// the service has started.
void Mps::Start() const { OutputOf({"/bin/sh", "-c", "\"$1\" -d >&2; echo", "sh", control}, variables); }

bool Mps::Answers() const { return !Ask("get_server_list").empty(); }

bool Mps::HasPrograms() const {
  std::istringstream servers(Ask("get_server_list"));
  for (std::string server; servers >> server;) {
    if (!IsNumber(server)) continue;
    std::istringstream clients(Ask("get_client_list " + server));
    for (std::string client; clients >> client;) {
      if (IsNumber(client)) return true;
    }
  }
  return false;
}

void Keep(const Mps& mps) {
  UniqueFd keeper(open(mps.KeeperFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const UniqueFd users(open(mps.UsersFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!keeper || !users || flock(keeper.get(), LOCK_EX | LOCK_NB) != 0) return;
  int without_users = 0;
  for (int look = 0;; ++look) {
    if (look % kLooksPerAnswer == 0 && !mps.Answers()) mps.Start();
    std::this_thread::sleep_for(kLook);
    if (flock(users.get(), LOCK_EX | LOCK_NB) != 0) {
      without_users = 0;
      continue;
    }
    if (++without_users >= kLooksWithoutUsers && End(mps)) {
      // New programs wait until `users` is unlocked. Then the next keeper can have its lock.
      keeper.Reset();
      return;
    }
    flock(users.get(), LOCK_UN);
  }
}

}  // namespace xsched::cli::cuda
