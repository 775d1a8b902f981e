// What a demo that is ended early leaves behind: nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/programs/background_program.h"
#include "cli/testing/processes.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::cli::testing {
namespace {

using server::testing::Eventually;
using server::testing::TempFolder;

class Demo : public ::testing::TestWithParam<int> {
 protected:
  // A hashcat that never says how far it is: the demo waits for it.
  void SetUp() override {
    std::filesystem::create_directory(bin_);
    std::filesystem::create_directory(temporary_);
    std::string hashcat = bin_ + "/hashcat";
    std::ofstream(hashcat) << "#!/bin/sh\necho $$ > '" << pid_file_ << "'\nexec sleep 100\n";
    std::filesystem::permissions(hashcat, std::filesystem::perms::owner_all);
  }

  TempFolder folder_;
  std::string bin_ = folder_.path() + "/bin";
  std::string temporary_ = folder_.path() + "/tmp";
  std::string pid_file_ = folder_.path() + "/pid";
};

TEST_P(Demo, told_to_end_ends_by_that_signal_and_leaves_no_program_and_no_file) {
  std::string path = "PATH=" + bin_ + ":" + getenv("PATH");
  BackgroundProgram demo({"env", path, "TMPDIR=" + temporary_, XSCHED_PROGRAM, "demo", "--seconds", "3"},
                         folder_.path() + "/output");
  ASSERT_TRUE(
      Eventually([&] { return IsRunning(PidIn(pid_file_)) || demo.Status(); }, std::chrono::seconds(60)));
  ASSERT_FALSE(demo.Status()) << std::ifstream(folder_.path() + "/output").rdbuf();
  EXPECT_FALSE(std::filesystem::is_empty(temporary_));
  // To it alone, as a terminal does: the others are in groups of their own.
  kill(demo.pid(), GetParam());
  EXPECT_TRUE(Eventually([&] { return demo.Status() == -GetParam(); }));
  EXPECT_FALSE(IsRunning(PidIn(pid_file_)));
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));
}

INSTANTIATE_TEST_SUITE_P(, Demo, ::testing::Values(SIGINT, SIGTERM), [](const auto& signal) {
  return std::string(signal.param == SIGINT ? "SIGINT" : "SIGTERM");
});

}  // namespace
}  // namespace xsched::cli::testing
