// What a program in the place of xsched can do to the process of Slurm that asks it: nothing.
#include "slurm/task_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace xsched::slurm {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr Duration kShort = std::chrono::milliseconds(300);
// Whatever takes longer has not kept the time.
constexpr Duration kLong = std::chrono::seconds(8);

class SlurmTaskEnvironment : public ::testing::Test {
 protected:
  ~SlurmTaskEnvironment() override { unlink(path_.c_str()); }

  // What a shell script answers; an error begins with "error: ".
  std::string AnswerOf(const std::string& script, Duration patience = kPatience) const {
    std::ofstream(path_) << "#!/bin/sh\n" << script << "\n";
    chmod(path_.c_str(), 0755);
    char* const environment[] = {nullptr};
    Result<Text> text = EnvironmentByXSched(path_.c_str(), {}, environment, patience);
    if (!text) return std::string("error: ") + text.error().text();
    std::string answer;
    text->ForEach([&](std::string_view entry) { answer += std::string(entry) + "\n"; });
    return answer;
  }

  void ExpectThatItIsEndedInTime(const std::string& script) const {
    const TimePoint begin = MonotonicClock::now();
    EXPECT_THAT(AnswerOf(script, kShort), EndsWith("did not answer within 0.3 s")) << script;
    EXPECT_LT(MonotonicClock::now() - begin, kLong) << script;
    EXPECT_TRUE(waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "it is left: " << script;
  }

  const std::string path_ = ::testing::TempDir() + "/slurm-task-" + std::to_string(getpid());
};

TEST_F(SlurmTaskEnvironment, a_program_that_ignores_signals_is_ended_in_time) {
  ExpectThatItIsEndedInTime("trap '' ALRM TERM INT HUP; exec sleep 1000");
}

TEST_F(SlurmTaskEnvironment, a_program_that_stops_itself_is_ended_in_time) {
  ExpectThatItIsEndedInTime("kill -STOP $$; exec sleep 1000");
}

TEST_F(SlurmTaskEnvironment, a_program_that_closes_its_output_and_goes_on_is_ended_in_time) {
  ExpectThatItIsEndedInTime("trap '' ALRM; printf 'A=B\\0'; exec sleep 1000 >/dev/null 2>&1");
}

TEST_F(SlurmTaskEnvironment, does_not_depend_on_how_large_files_may_be) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  // The script itself is smaller.
  const rlimit small{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string answer = AnswerOf("printf 'A=%0100d\\0' 7");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(answer, "A=" + std::string(99, '0') + "7\n");
}

TEST_F(SlurmTaskEnvironment, more_than_any_environment_has_is_not_kept) {
  const TimePoint begin = MonotonicClock::now();
  EXPECT_THAT(AnswerOf("exec cat /dev/zero"), EndsWith("writes more than any environment has"));
  EXPECT_LT(MonotonicClock::now() - begin, kLong);
}

TEST_F(SlurmTaskEnvironment, many_messages_hold_up_no_answer_and_the_first_one_is_kept) {
  char* const environment[] = {nullptr};
  AnswerOf(
      "i=0; echo 'xsched: first' >&2; while [ $i -lt 4000 ]; do i=$((i+1)); echo "
      "'xsched: ....................................................' >&2; done; printf 'A=B\\0'");
  Result<Text> text = EnvironmentByXSched(path_.c_str(), {}, environment);
  ASSERT_TRUE(bool(text)) << text.error().text();
  EXPECT_STREQ(text->warning, "first");
  EXPECT_STREQ(text->memory.get(), "A=B");
}

TEST_F(SlurmTaskEnvironment, a_program_can_start_no_process_that_stays_behind) {
  EXPECT_THAT(
      AnswerOf("while read -r a b c; do [ \"$a $b\" = 'Max processes' ] && printf 'LIMIT=%s\\0' \"$c\"; "
               "done </proc/self/limits; exit 0"),
      StartsWith("LIMIT=0 "));
}

TEST_F(SlurmTaskEnvironment, a_program_that_is_killed_has_not_answered) {
  EXPECT_THAT(AnswerOf("printf 'A=B\\0'; kill -KILL $$"), EndsWith(": it cannot be run"));
}

}  // namespace
}  // namespace xsched::slurm
