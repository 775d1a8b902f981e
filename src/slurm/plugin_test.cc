// The plugin over a stand-in for SPANK, with the real `xsched run`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "slurm/testing/spank_stand_in.h"

namespace xsched::slurm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using testing::ThisJob;

class SlurmPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::NewJob();
    ThisJob().environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/tmp"}, {"SLURM_JOB_PARTITION", "gpu"}};
  }

  static void Begin(std::vector<std::string> arguments) {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    EXPECT_EQ(slurm_spank_init(nullptr, static_cast<int>(words.size()), words.data()), 0);
  }
  // As slurmstepd: the options that the user gave, then the step.
  static void RunStep(std::vector<std::string> arguments, const std::vector<std::string>& options = {}) {
    Begin(arguments);
    for (const std::string& option : options) Give(option);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    EXPECT_EQ(slurm_spank_user_init(nullptr, static_cast<int>(words.size()), words.data()), 0);
  }
  // "xsched-priority=5". Returns what the plugin does.
  static int Give(const std::string& option) {
    const std::string name = option.substr(0, option.find('='));
    for (const spank_option& known : ThisJob().options)
      if (name == known.name) return known.cb(known.val, option.c_str() + name.size() + 1, 1);
    ADD_FAILURE() << "no such option: " << name;
    return -1;
  }

  // The environment of a program that `xsched run` starts from that of the job.
  static std::map<std::string, std::string> WhatXSchedRunSets(const std::string& options) {
    std::string command = "env -i";
    for (const auto& [name, value] : ThisJob().environment) command += " '" + name + "=" + value + "'";
    command += " " XSCHED_PROGRAM " run --no-server " + options + " -- /usr/bin/env 2>/dev/null";
    FILE* output = popen(command.c_str(), "r");
    std::map<std::string, std::string> variables;
    char line[4096];
    while (output != nullptr && fgets(line, sizeof line, output) != nullptr) {
      const std::string entry(line, strcspn(line, "\n"));
      variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    }
    EXPECT_EQ(output == nullptr ? -1 : pclose(output), 0);
    return variables;
  }

  // A program in the place of xsched.
  static std::string Script(const std::string& text) {
    std::string path = ::testing::TempDir() + "/slurm-" + std::to_string(getpid());
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
};

TEST_F(SlurmPlugin, has_what_slurm_looks_for) {
  Begin({});
  std::vector<std::string> names;
  for (const spank_option& option : ThisJob().options) names.emplace_back(option.name);
  EXPECT_THAT(names, ElementsAre("xsched-priority", "xsched-utilization", "xsched-weight"));
}

TEST_F(SlurmPlugin, a_task_gets_what_xsched_run_sets) {
  auto expected = WhatXSchedRunSets("--priority=5 --weight=300");
  RunStep({}, {"xsched-priority=5", "xsched-weight=300"});
  EXPECT_EQ(ThisJob().environment["XSCHED_AUTO_XQUEUE_PRIORITY"], "5");
  EXPECT_EQ(ThisJob().environment["XSCHED_JOB"], "slurm-7.0");
  expected["XSCHED_JOB"] = "slurm-7.0";
  EXPECT_EQ(ThisJob().environment, expected);
  EXPECT_THAT(ThisJob().errors, IsEmpty());
}

TEST_F(SlurmPlugin, a_job_of_which_nothing_says_anything_keeps_its_environment) {
  const auto before = ThisJob().environment;
  RunStep({"partition=urgent:priority=10", "max_priority=4", "xsched=/nowhere/xsched"});
  EXPECT_EQ(ThisJob().environment, before);
  EXPECT_THAT(ThisJob().to_log, IsEmpty());
}

TEST_F(SlurmPlugin, a_variable_that_xsched_run_unsets_is_unset) {
  ThisJob().environment["XSCHED_POLICY"] = "HPF";
  RunStep({"priority=0"});
  EXPECT_THAT(ThisJob().environment, Not(Contains(Key("XSCHED_POLICY"))));
}

TEST_F(SlurmPlugin, a_step_is_a_job_of_its_own_unless_the_user_has_named_one) {
  ThisJob().environment["XSCHED_JOB"] = "00c0ffee00c0ffee";  // of the shell that ran sbatch, by xsched run
  RunStep({"priority=0"});
  EXPECT_THAT(ThisJob().environment, Contains(Pair("XSCHED_JOB", "slurm-7.0")));
  testing::NewJob();
  ThisJob().environment["XSCHED_JOB"] = "slurm-7.batch";
  RunStep({"priority=0"});
  EXPECT_THAT(ThisJob().environment, Contains(Pair("XSCHED_JOB", "slurm-7.0")));
  testing::NewJob();
  ThisJob().environment["XSCHED_JOB"] = "gang";
  RunStep({"priority=0"});
  EXPECT_THAT(ThisJob().environment, Contains(Pair("XSCHED_JOB", "gang")));
}

TEST_F(SlurmPlugin, rules_are_about_partition_account_and_qos_and_caps_are_said_on_one_node) {
  ThisJob().environment["SLURM_JOB_ACCOUNT"] = "ml";
  ThisJob().environment["SLURM_JOB_QOS"] = "high";
  const std::vector<std::string> arguments = {"partition=gpu:priority=1", "account=ml:weight=7",
                                              "qos=high:max_priority=20"};
  RunStep(arguments, {"xsched-priority=50"});
  EXPECT_THAT(ThisJob().environment, AllOf(Contains(Pair("XSCHED_AUTO_XQUEUE_PRIORITY", "20")),
                                           Contains(Pair("XSCHED_AUTO_XQUEUE_WEIGHT", "7"))));
  EXPECT_THAT(ThisJob().to_user, Contains("xsched: priority 50 is lowered to 20, the highest for this job "
                                          "(partition gpu, account ml, QOS high)"));
  ThisJob().to_user.clear();
  ThisJob().node = 1;
  RunStep(arguments, {"xsched-priority=50"});
  EXPECT_THAT(ThisJob().to_user, Not(Contains(HasSubstr("lowered"))));
}

TEST_F(SlurmPlugin, shards_are_the_share) {
  ThisJob().environment["SLURM_SHARDS_ON_NODE"] = "1";
  ThisJob().environment["XSCHED_AUTO_XQUEUE_WEIGHT"] = "100";
  RunStep({"shards=4"});
  EXPECT_THAT(ThisJob().environment, AllOf(Contains(Pair("XSCHED_AUTO_XQUEUE_UTILIZATION", "25")),
                                           Contains(Pair("XSCHED_AUTO_XQUEUE_WEIGHT", "2500"))));
}

TEST_F(SlurmPlugin, a_wrong_option_is_refused_with_what_is_wanted) {
  ThisJob().context = S_CTX_ALLOCATOR;
  Begin({});
  EXPECT_LT(Give("xsched-priority=high"), 0);
  EXPECT_LT(Give("xsched-utilization=101"), 0);
  EXPECT_EQ(Give("xsched-weight=10000"), 0);
  EXPECT_THAT(ThisJob().errors, ElementsAre("xsched: priority: 'high' is not a number from -256 to 255",
                                            "xsched: utilization: '101' is not a number from 0 to 100"));
}

TEST_F(SlurmPlugin, the_node_says_once_which_arguments_are_wrong) {
  ThisJob().context = S_CTX_SLURMD;
  Begin({"priority=5", "partition=a:nice=3"});
  EXPECT_THAT(
      ThisJob().errors,
      ElementsAre(HasSubstr("this argument in plugstack.conf is ignored: 'nice=3' is not a setting")));
  EXPECT_THAT(ThisJob().options, IsEmpty());
  testing::NewJob();
  RunStep({"priority=5", "partition=a:nice=3"});
  EXPECT_THAT(ThisJob().errors, IsEmpty()) << "and no job says it";
  EXPECT_EQ(ThisJob().environment["XSCHED_AUTO_XQUEUE_PRIORITY"], "5");
}

TEST_F(SlurmPlugin, without_xsched_the_job_runs_natively_and_who_asked_for_it_is_told) {
  const auto before = ThisJob().environment;
  RunStep({"xsched=/nowhere/xsched"}, {"xsched-priority=5"});
  EXPECT_EQ(ThisJob().environment, before);
  EXPECT_THAT(ThisJob().to_user,
              ElementsAre(AllOf(HasSubstr("xsched: the job runs unscheduled on "),
                                EndsWith(": /nowhere/xsched: No such file or directory"))));
  EXPECT_THAT(ThisJob().to_log, IsEmpty());
}

TEST_F(SlurmPlugin, without_xsched_a_job_that_did_not_ask_for_it_is_not_told) {
  RunStep({"xsched=/nowhere/xsched", "priority=0"});
  EXPECT_THAT(ThisJob().to_user, IsEmpty());
  EXPECT_THAT(ThisJob().to_log, ElementsAre(HasSubstr("the job runs unscheduled on ")));
}

TEST_F(SlurmPlugin, an_xsched_that_fails_leaves_the_environment_as_it_is) {
  const auto before = ThisJob().environment;
  RunStep({"xsched=" + Script("echo 'xsched: no library' >&2; echo A=B; exit 3")}, {"xsched-priority=5"});
  EXPECT_EQ(ThisJob().environment, before);
  EXPECT_THAT(ThisJob().to_user, ElementsAre(EndsWith(": no library")));
  ThisJob().to_user.clear();
  RunStep({"xsched=" + Script("kill -KILL $$")}, {"xsched-priority=5"});
  EXPECT_EQ(ThisJob().environment, before);
  EXPECT_THAT(ThisJob().to_user, ElementsAre(EndsWith(": it cannot be run")));
}

TEST_F(SlurmPlugin, what_xsched_run_warns_of_is_passed_on) {
  RunStep({"xsched=" + Script("echo 'xsched: libshim.so is not installed' >&2; exec env -0")},
          {"xsched-priority=5"});
  EXPECT_THAT(ThisJob().to_user, ElementsAre("xsched: libshim.so is not installed"));
  EXPECT_THAT(ThisJob().environment, Contains(Key("XSCHED_JOB")));
}

TEST_F(SlurmPlugin, variables_of_any_length_and_with_any_text_survive) {
  ThisJob().environment["LONG"] = std::string(100'000, 'x');
  ThisJob().environment["LINES"] = "a\nb=c\n";
  ThisJob().environment["EMPTY"] = "";
  ThisJob().environment["BASH_FUNC_f%%"] = "() { :; }";
  ThisJob().environment["LD_PRELOAD"] = "";
  const auto before = ThisJob().environment;
  RunStep({"priority=0"});
  for (const char* name : {"LONG", "LINES", "EMPTY", "BASH_FUNC_f%%"})
    EXPECT_EQ(ThisJob().environment[name], before.at(name));
}

TEST_F(SlurmPlugin, an_entry_that_cannot_be_unset_stays_and_holds_nobody_up) {
  ThisJob().environment["XSCHED_POLICY"] = "HPF";
  ThisJob().odd_entries = {"ODD"};
  RunStep({"xsched=" + Script("printf 'PATH=/bin\\0'")}, {"xsched-priority=5"});
  EXPECT_THAT(ThisJob().environment, ElementsAre(Pair("PATH", "/bin"), Pair("XSCHED_JOB", "slurm-7.0")));
}

TEST_F(SlurmPlugin, leaves_no_descriptor_and_no_child) {
  RunStep({"priority=0"});
  const auto count = [] {
    std::filesystem::directory_iterator folder("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  const auto before = count();
  for (int i = 0; i < 3; ++i) RunStep({"priority=0"});
  EXPECT_EQ(count(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace xsched::slurm
