#include "cli/programs/background_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cli/testing/processes.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::cli::testing {
namespace {

using server::testing::Eventually;
using server::testing::TempFolder;

class Background : public ::testing::Test {
 protected:
  // Of a program whose script writes it to `pid`.
  pid_t Pid() { return PidIn(folder_.path() + "/pid"); }
  std::vector<std::string> Script(const std::string& text) {
    return {"/bin/sh", "-c", "cd '" + folder_.path() + "'; " + text};
  }

  TempFolder folder_;
  std::string output_ = folder_.path() + "/output";
};

TEST_F(Background, its_status_is_its_own_or_the_signal_that_ended_it) {
  BackgroundProgram fails(Script("exit 7"), output_);
  EXPECT_TRUE(Eventually([&] { return fails.Status() == 7; }));
  BackgroundProgram killed(Script("kill -9 $$"), output_);
  EXPECT_TRUE(Eventually([&] { return killed.Status() == -SIGKILL; }));
  BackgroundProgram missing({folder_.path() + "/missing"}, output_);
  EXPECT_TRUE(Eventually([&] { return missing.Status() == 127; }));
}

TEST_F(Background, the_output_of_the_one_before_is_gone_when_it_starts) {
  std::ofstream(output_) << "before\n";
  BackgroundProgram program(Script("sleep 100"), output_);
  EXPECT_EQ(std::ifstream(output_).get(), EOF);
}

TEST_F(Background, its_own_children_end_with_it) {
  BackgroundProgram program(Script("sleep 100 & echo $! > pid; wait"), output_);
  ASSERT_TRUE(Eventually([&] { return IsRunning(Pid()); }));
  program.End();
  EXPECT_TRUE(Eventually([&] { return !IsRunning(Pid()); }));
}

TEST_F(Background, children_that_it_left_behind_end_too) {
  BackgroundProgram program(Script("sleep 100 & echo $! > pid"), output_);
  ASSERT_TRUE(Eventually([&] { return program.Status() == 0; }));
  EXPECT_TRUE(IsRunning(Pid()));
  program.End();
  EXPECT_TRUE(Eventually([&] { return !IsRunning(Pid()); }));
}

TEST_F(Background, one_that_does_not_listen_to_SIGTERM_is_killed) {
  BackgroundProgram program(Script("trap '' TERM; echo $$ > pid; sleep 100"), output_);
  ASSERT_TRUE(Eventually([&] { return IsRunning(Pid()); }));
  program.End();
  EXPECT_TRUE(Eventually([&] { return !IsRunning(Pid()); }));
}

TEST_F(Background, it_ends_when_its_owner_is_killed) {
  pid_t owner = fork();
  if (owner == 0) {
    BackgroundProgram program(Script("echo $$ > pid; exec sleep 100"), output_);
    for (;;) pause();
  }
  ASSERT_TRUE(Eventually([&] { return IsRunning(Pid()); }));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(Eventually([&] { return !IsRunning(Pid()); }));
}

}  // namespace
}  // namespace xsched::cli::testing
