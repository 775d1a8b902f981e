#include "preempt/api/settings.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "sched/core/policy.h"

namespace xsched::preempt {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class SettingsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  // Reads the settings of an environment with these variables.
  Settings With(const std::vector<std::pair<std::string, std::string>>& variables) {
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
      set_.push_back(name);
    }
    return ReadSettings();
  }

 private:
  std::vector<std::string> set_;
};

sched::PolicySetting Default() { return *sched::FindPolicy(sched::kDefaultPolicy); }

TEST_F(SettingsTest, an_empty_environment_means_that_the_program_schedules_by_itself) {
  const Settings settings = ReadSettings();
  EXPECT_EQ(settings.scheduler, kSchedulerAppManaged);
  EXPECT_EQ(settings.policy, Default());
  EXPECT_EQ(settings.at_a_time, 0u);
  EXPECT_FALSE(settings.auto_xqueue);
  EXPECT_EQ(settings.level, kPreemptLevelInterrupt);
  EXPECT_EQ(settings.threshold, kDefaultThreshold);
  EXPECT_EQ(settings.batch_size, kDefaultBatchSize);
  EXPECT_EQ(settings.hints, sched::Hints{});
  EXPECT_EQ(settings.timeslice_us, 0);
}

TEST_F(SettingsTest, a_scheduler_is_named_in_any_case) {
  EXPECT_EQ(With({{"XSCHED_SCHEDULER", "GLB"}}).scheduler, kSchedulerGlobal);
  EXPECT_EQ(With({{"XSCHED_SCHEDULER", "lcl"}}).scheduler, kSchedulerLocal);
  EXPECT_EQ(With({{"XSCHED_SCHEDULER", "App"}}).scheduler, kSchedulerAppManaged);
}

TEST_F(SettingsTest, a_scheduler_that_there_is_not_is_warned_of_and_means_none) {
  CaptureStderr();
  EXPECT_EQ(With({{"XSCHED_SCHEDULER", "SERVER"}}).scheduler, kSchedulerAppManaged);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("XSCHED_SCHEDULER=SERVER"));
}

TEST_F(SettingsTest, a_policy_means_the_scheduler_of_this_process) {
  for (sched::PolicyGetter policy : sched::Policies()) {
    const Settings settings = With({{"XSCHED_SCHEDULER", "GLB"}, {"XSCHED_POLICY", policy().info().name}});
    EXPECT_EQ(settings.scheduler, kSchedulerLocal);
    EXPECT_EQ(settings.policy, sched::PolicySetting(policy()));
  }
}

TEST_F(SettingsTest, policies_are_combined_and_decide_about_what_they_are_told_to) {
  const sched::PolicySetting setting = With({{"XSCHED_POLICY", "hpf/CFS:process"}}).policy;
  ASSERT_EQ(setting.layers().size(), 2u);
  EXPECT_STREQ(setting.layers()[0].policy->info().name, "HPF");
  EXPECT_STREQ(setting.layers()[1].policy->info().name, "CFS");
  EXPECT_EQ(setting.layers()[1].by, sched::Granularity::kProcess);
}

// As in XSched 1.2, where it also means that this process schedules.
TEST_F(SettingsTest, a_policy_that_there_is_not_is_warned_of_and_means_the_default_one) {
  CaptureStderr();
  const Settings settings = With({{"XSCHED_SCHEDULER", "GLB"}, {"XSCHED_POLICY", "NONE"}});
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("XSCHED_POLICY=NONE"));
  EXPECT_EQ(settings.scheduler, kSchedulerLocal);
  EXPECT_EQ(settings.policy, Default());
}

TEST_F(SettingsTest, what_shims_make_is_set_by_variables) {
  const Settings settings = With({{"XSCHED_AUTO_XQUEUE", "ON"},
                                  {"XSCHED_AUTO_XQUEUE_LEVEL", "2"},
                                  {"XSCHED_AUTO_XQUEUE_THRESHOLD", "40"},
                                  {"XSCHED_AUTO_XQUEUE_BATCH_SIZE", "20"},
                                  {"XSCHED_AUTO_XQUEUE_PRIORITY", "7"},
                                  {"XSCHED_AUTO_XQUEUE_UTILIZATION", "30"},
                                  {"XSCHED_AUTO_XQUEUE_DEADLINE", "900"},
                                  {"XSCHED_AUTO_XQUEUE_LAXITY", "80"},
                                  {"XSCHED_AUTO_XQUEUE_WEIGHT", "300"},
                                  {"XSCHED_AUTO_XQUEUE_GUARANTEE", "2000"},
                                  {"XSCHED_AUTO_XQUEUE_PERIOD", "10000"},
                                  {"XSCHED_AUTO_XQUEUE_LIMIT", "5000"},
                                  {"XSCHED_AUTO_XQUEUE_BURST", "1000"},
                                  {"XSCHED_AUTO_XQUEUE_LATENCY_TARGET", "20000"},
                                  {"XSCHED_AUTO_XQUEUE_FLOOR", "15"},
                                  {"XSCHED_AUTO_XQUEUE_TIMESLICE", "2000"},
                                  {"XSCHED_AUTO_XQUEUE_KDEADLINE", "4"}});
  EXPECT_TRUE(settings.auto_xqueue);
  EXPECT_EQ(settings.level, kPreemptLevelDeactivate);
  EXPECT_EQ(settings.threshold, 40);
  EXPECT_EQ(settings.batch_size, 20);
  EXPECT_EQ(settings.hints.priority, 7);
  EXPECT_EQ(settings.hints.critical_priority, 7) << "what is late keeps its priority";
  EXPECT_EQ(settings.hints.utilization, 30);
  EXPECT_EQ(settings.hints.deadline_us, 900);
  EXPECT_EQ(settings.hints.laxity_us, 80);
  EXPECT_EQ(settings.hints.weight, 300);
  EXPECT_EQ(settings.hints.guarantee_us, 2000);
  EXPECT_EQ(settings.hints.period_us, 10'000);
  EXPECT_EQ(settings.hints.limit_us, 5000);
  EXPECT_EQ(settings.hints.burst_us, 1000);
  EXPECT_EQ(settings.hints.latency_target_us, 20'000);
  EXPECT_EQ(settings.hints.floor, 15);
  EXPECT_EQ(settings.timeslice_us, 2000);
  EXPECT_EQ(settings.at_a_time, 4u);
}

TEST_F(SettingsTest, values_that_are_no_reservation_together_are_ignored_with_a_warning) {
  CaptureStderr();
  EXPECT_EQ(With({{"XSCHED_AUTO_XQUEUE_GUARANTEE", "2000"}}).hints.guarantee_us, 0) << "there is no period";
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("XSCHED_AUTO_XQUEUE_GUARANTEE"));
}

TEST_F(SettingsTest, a_deadline_and_a_laxity_are_at_most_a_year) {
  const sched::Hints hints = With({{"XSCHED_AUTO_XQUEUE_DEADLINE", "31556952000001"},
                                   {"XSCHED_AUTO_XQUEUE_LAXITY", "9223372036854775807"}})
                                 .hints;
  EXPECT_EQ(hints.deadline_us, NO_DEADLINE);
  EXPECT_EQ(hints.laxity_us, NO_LAXITY);
}

TEST_F(SettingsTest, a_latency_target_of_0_is_none_and_no_mistake) {
  CaptureStderr();
  EXPECT_EQ(With({{"XSCHED_AUTO_XQUEUE_LATENCY_TARGET", "0"}}).hints.latency_target_us, NO_LATENCY_TARGET);
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST_F(SettingsTest, a_batch_is_never_larger_than_the_threshold) {
  EXPECT_EQ(With({{"XSCHED_AUTO_XQUEUE_THRESHOLD", "3"}}).batch_size, 3);
  CaptureStderr();
  EXPECT_EQ(With({{"XSCHED_AUTO_XQUEUE_BATCH_SIZE", "4"}}).batch_size, 3);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("XSCHED_AUTO_XQUEUE_BATCH_SIZE"));
}

TEST_F(SettingsTest, one_latency_is_wanted_of_all_kinds_of_gates) {
  const Settings usual = ReadSettings();
  EXPECT_LT(usual.gate_latency, usual.latency) << "a gate on the device costs less";
  const Settings settings = With({{"XSCHED_PREEMPT_LATENCY_US", "300"}});
  EXPECT_EQ(settings.latency, microseconds(300));
  EXPECT_EQ(settings.gate_latency, microseconds(300));
}

}  // namespace
}  // namespace xsched::preempt
