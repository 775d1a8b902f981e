// What becomes of the program of `xsched run --report` if its terminal goes away.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "base/fd.h"
#include "server/testing/server_process.h"

namespace xsched::cli {
namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool ComesToHave(const std::string& path, const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ContentOf(path) != text) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// As of a window or of a remote login that has xsched in place of a shell.
pid_t StartAsLeaderOf(const char* terminal, const std::string& script, const std::string& report) {
  const pid_t leader = fork();
  if (leader != 0) return leader;
  setsid();
  const int end = open(terminal, O_RDWR);  // of the session from now on
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(end, fd);
  const std::string option = "--report=" + report;
  execl(XSCHED_PROGRAM, "xsched", "run", "--no-server", option.c_str(), "--", "sh", "-c", script.c_str(),
        nullptr);
  _exit(125);
}

TEST(ForegroundProgram, a_terminal_that_hangs_up_ends_the_program_of_the_session_s_leader) {
  server::testing::TempFolder folder;
  const std::string heard = folder.path() + "/heard";
  UniqueFd terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal && grantpt(terminal.get()) == 0 && unlockpt(terminal.get()) == 0);
  const std::string script = "trap 'echo hangup >>" + heard + "; exit 0' HUP; echo ready >" + heard +
                             "; while :; do sleep 0.02; done";
  const pid_t leader = StartAsLeaderOf(ptsname(terminal.get()), script, folder.path() + "/report");
  ASSERT_GT(leader, 0);
  EXPECT_TRUE(ComesToHave(heard, "ready\n"));
  terminal.Reset();
  const bool has_heard = ComesToHave(heard, "ready\nhangup\n");
  EXPECT_TRUE(has_heard) << ContentOf(heard);
  if (!has_heard) kill(leader, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(leader, &status, 0), leader);
  EXPECT_EQ(ContentOf(heard), has_heard ? "ready\nhangup\n" : "ready\n");
}

}  // namespace
}  // namespace xsched::cli
