// The file of the system's server, in an /etc of this test's own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/testing/tool.h"
#include "server/testing/server_process.h"

namespace xsched::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSystemFolder = "/etc/xsched";
constexpr const char* kSystemFile = "/etc/xsched/xserver.json";
constexpr uid_t kAnotherUser = 54321;

// A folder or file that is not there has none.
mode_t ModeOf(const char* path) {
  struct stat found {};
  return stat(path, &found) == 0 ? found.st_mode & 07777 : 0;
}

class SystemConfig : public ::testing::Test {
 protected:
  // Runs it in a process in which /etc is empty.
  static void WithEmptyEtc(const std::function<void()>& test) {
    if (geteuid() != 0) GTEST_SKIP() << "only root writes the system's files";
    const pid_t child = fork();
    if (child == 0) {
      if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", "/etc", "tmpfs", 0, "mode=755") != 0)
        _exit(kNotPossible);
      test();
      fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPossible) GTEST_SKIP() << "nothing can be mounted";
    EXPECT_EQ(status, 0);
  }

 private:
  static constexpr int kNotPossible = 77;
};

TEST_F(SystemConfig, the_server_s_user_can_read_what_is_set_whatever_the_umask_is) {
  WithEmptyEtc([] {
    umask(077);
    EXPECT_EQ(RunXsched({"config", "set", "--system", "policy", "EEVDF"}, {}).status, kExitOk);
    EXPECT_EQ(ModeOf(kSystemFolder), 0755u);
    EXPECT_EQ(ModeOf(kSystemFile), 0644u);
    EXPECT_EQ(RunXsched({"config", "get", "--system", "policy"}, {}, kAnotherUser).out, "EEVDF\n");
  });
}

TEST_F(SystemConfig, an_ordinary_user_is_told_that_only_root_may_make_or_change_it) {
  WithEmptyEtc([] {
    for (const bool has_file : {false, true}) {
      if (has_file) {
        ASSERT_EQ(RunXsched({"config", "set", "--system", "policy", "EEVDF"}, {}).status, kExitOk);
      }
      const Outcome outcome = RunXsched({"config", "set", "--system", "policy", "CFS"}, {}, kAnotherUser);
      EXPECT_EQ(outcome.status, kExitNotPermitted) << has_file;
      EXPECT_EQ(outcome.errors,
                "xsched: /etc/xsched/xserver.json: cannot be written: Permission denied (only root may)\n");
    }
  });
}

TEST_F(SystemConfig, what_the_service_s_command_line_decides_is_said_to_need_more) {
  WithEmptyEtc([] {
    std::ofstream("/etc/group") << "gpu-admins:x:1234:\n";
    const Outcome outcome = RunXsched({"config", "set", "--system", "admin_group", "gpu-admins"}, {});
    EXPECT_EQ(outcome.status, kExitOk);
    EXPECT_THAT(outcome.errors, HasSubstr("systemctl edit xserver"));
  });
}

TEST_F(SystemConfig, a_file_that_only_the_server_s_user_can_read_is_no_problem_for_others) {
  WithEmptyEtc([] {
    ASSERT_EQ(RunXsched({"config", "set", "--system", "policy", "EEVDF"}, {}).status, kExitOk);
    ASSERT_EQ(chmod(kSystemFile, 0600), 0);
    const Outcome outcome = RunXsched({"config"}, {{"XDG_CONFIG_HOME", "/nonexistent"}}, kAnotherUser);
    EXPECT_EQ(outcome.status, kExitOk);
    EXPECT_THAT(outcome.out, Not(HasSubstr("problem: ")));
  });
}

// Its settings may say who is kept out.
TEST_F(SystemConfig, a_server_that_cannot_read_its_settings_says_so_and_does_not_start) {
  WithEmptyEtc([] {
    ASSERT_EQ(RunXsched({"config", "set", "--system", "mode", "0600"}, {}).status, kExitOk);
    ASSERT_EQ(chmod(kSystemFile, 0600), 0);
    const server::testing::TempFolder folder;
    const std::string errors = folder.path() + "/errors";
    const std::string socket = folder.path() + "/xserver.sock";
    const pid_t server = fork();
    if (server == 0) {
      alarm(60);
      const int program = open(XSERVER_PROGRAM, O_PATH | O_CLOEXEC);
      dup2(open(errors.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      std::string words[] = {"xserver", "--system", "--socket", socket, "--idle-exit", "1"};
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      if (setgid(kAnotherUser) == 0 && setuid(kAnotherUser) == 0) fexecve(program, argv.data(), environ);
      _exit(125);
    }
    int status = -1;
    ASSERT_EQ(waitpid(server, &status, 0), server);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    std::ifstream file(errors);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, std::string("xserver: cannot read ") + kSystemFile + ": Permission denied");
  });
}

// What the server's command line says.
int StatusOfServer(const std::string& arguments, std::string& errors) {
  const server::testing::TempFolder folder;
  const std::string command = "timeout 5 " XSERVER_PROGRAM " --socket " + folder.path() + "/s " + arguments;
  const Outcome outcome = RunShell(command, {{"XDG_CONFIG_HOME", folder.path()}});
  errors = outcome.errors;
  return outcome.status;
}

TEST(ServerOptions, the_help_has_defaults_and_ranges) {
  const Outcome help = RunShell(XSERVER_PROGRAM " --help | tr -s ' \\n' '  '", {});
  EXPECT_THAT(help.out, HasSubstr("100 to 10000000 µs; default 5000"));
  EXPECT_THAT(help.out, HasSubstr("0 to 1000000 µs; default 200"));
  EXPECT_THAT(help.out, HasSubstr("0 to 1000000 µs; default 1000"));
  EXPECT_THAT(help.out, HasSubstr("0 to 1000000; default: never"));
}

TEST(ServerOptions, of_two_policies_none_is_chosen) {
  std::string errors;
  EXPECT_EQ(StatusOfServer("--policy HPF CFS", errors), kExitUsage);
  EXPECT_THAT(errors, HasSubstr("excludes"));
}

}  // namespace
}  // namespace xsched::cli::testing
