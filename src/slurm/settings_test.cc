#include "slurm/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xsched::slurm {
namespace {

using testing::HasSubstr;

// The arguments without an error have their effect.
Rules RulesOf(const std::vector<const char*>& arguments, const Job& job) {
  Rules rules;
  for (const char* argument : arguments) {
    const Result<> applied = Apply(argument, job, rules);
    EXPECT_TRUE(bool(applied)) << argument << ": " << (applied ? "" : applied.error().text());
  }
  return rules;
}

Decision Decided(const std::vector<const char*>& arguments, const Job& job) {
  return Decide(RulesOf(arguments, job), job);
}

Values Only(Setting setting, int value) {
  Values values;
  values[setting] = value;
  return values;
}

std::string ErrorOf(const char* argument) {
  Rules rules;
  const Result<> applied = Apply(argument, Job{}, rules);
  EXPECT_FALSE(rules.defaults[kPriority] || rules.caps[kPriority]) << "an error changes nothing";
  return applied ? "" : applied.error().text();
}

TEST(SlurmSettings, a_job_of_which_nothing_says_anything_runs_natively) {
  EXPECT_EQ(Decided({}, {.partition = "gpu"}).values, Values{});
  EXPECT_EQ(
      Decided({"partition=urgent:priority=10", "max_priority=5", "shards=4"}, {.partition = "gpu"}).values,
      Values{});
}

TEST(SlurmSettings, an_option_takes_precedence_over_a_variable_and_that_over_a_default) {
  Job job{.variables = Only(kPriority, 2)};
  EXPECT_EQ(Decided({"priority=1"}, {}).values, Only(kPriority, 1));
  EXPECT_EQ(Decided({"priority=1"}, job).values, Only(kPriority, 2));
  job.options = Only(kPriority, 3);
  EXPECT_EQ(Decided({"priority=1"}, job).values, Only(kPriority, 3));
}

TEST(SlurmSettings, the_last_rule_that_is_about_the_job_counts_for_each_setting) {
  const std::vector<const char*> arguments = {"priority=0,weight=50", "partition=urgent:priority=10",
                                              "account=ml*:priority=20", "qos=high:weight=400"};
  EXPECT_EQ(Decided(arguments, {.partition = "batch"}).values, (Values{0, std::nullopt, 50}));
  EXPECT_EQ(Decided(arguments, {.partition = "urgent"}).values, (Values{10, std::nullopt, 50}));
  EXPECT_EQ(Decided(arguments, {.partition = "urgent", .account = "ml7", .qos = "high"}).values,
            (Values{20, std::nullopt, 400}));
}

TEST(SlurmSettings, what_is_more_than_the_job_may_have_is_lowered) {
  const Job job{.partition = "batch", .options = Only(kPriority, 50)};
  const Decision decision = Decided({"max_priority=100", "partition=batch:max_priority=-10"}, job);
  EXPECT_EQ(decision.values, Only(kPriority, -10));
  EXPECT_EQ(decision.lowered_from, Only(kPriority, 50));
  EXPECT_EQ(Decided({"max_priority=100"}, job).lowered_from, Values{});
  EXPECT_EQ(Decided({"max_priority=9"}, {.variables = Only(kPriority, 10)}).values, Only(kPriority, 9))
      << "also what a variable says";
}

TEST(SlurmSettings, shards_are_the_share_of_the_job_and_its_tasks_divide_it) {
  EXPECT_EQ(Decided({"shards=4"}, {.shards = 1}).values, (Values{std::nullopt, 25, 2500}));
  EXPECT_EQ(Decided({"shards=4"}, {.shards = 3, .tasks = 2}).values, (Values{std::nullopt, 38, 3750}));
  EXPECT_EQ(Decided({"shards=4"}, {.shards = 9}).values, (Values{std::nullopt, 100, 10000}));
  EXPECT_EQ(Decided({"shards=1000"}, {.shards = 1}).values, (Values{std::nullopt, 1, 10}));
  EXPECT_EQ(Decided({}, {.shards = 1}).values, Values{}) << "of how many is not known";
}

TEST(SlurmSettings, tasks_have_the_weight_of_their_shards_together_however_many_they_are) {
  for (const uint32_t tasks : {1U, 16U, 100U}) {
    const Values each = Decided({"shards=4"}, {.shards = 1, .tasks = tasks}).values;
    EXPECT_NEAR(*each[kWeight] * static_cast<int>(tasks), 2500, 12) << tasks;
  }
}

TEST(SlurmSettings, a_job_may_ask_for_less_than_its_shards_and_not_for_more) {
  const Decision less = Decided({"shards=4"}, {.shards = 2, .options = Only(kWeight, 10)});
  EXPECT_EQ(less.values, (Values{std::nullopt, 50, 10}));
  const Decision more = Decided({"shards=4"}, {.shards = 2, .options = Only(kWeight, 8000)});
  EXPECT_EQ(more.values, (Values{std::nullopt, 50, 5000}));
  EXPECT_EQ(more.lowered_from, Only(kWeight, 8000));
}

TEST(SlurmSettings, a_step_with_fewer_shards_has_its_own_share_and_not_that_of_its_job) {
  const Values of_job = {std::nullopt, 100, 100};
  const Decision decision = Decided({"shards=4"}, {.shards = 1, .variables = of_job});
  EXPECT_EQ(decision.values, (Values{std::nullopt, 25, 2500}));
  EXPECT_EQ(decision.lowered_from, Values{});
}

TEST(SlurmSettings, a_cap_lowers_a_share_by_shards_without_a_word_because_nobody_asked_for_it) {
  const Decision decision = Decided({"shards=4,max_utilization=30"}, {.shards = 2});
  EXPECT_EQ(decision.values, (Values{std::nullopt, 30, 5000}));
  EXPECT_EQ(decision.lowered_from, Values{});
}

TEST(SlurmSettings, the_program_is_named_by_its_path) {
  EXPECT_STREQ(RulesOf({"xsched=/opt/x:y,z/bin/xsched"}, {}).program, "/opt/x:y,z/bin/xsched");
}

TEST(SlurmSettings, a_wrong_argument_changes_nothing_and_says_what_is_wanted) {
  EXPECT_THAT(ErrorOf("priority=ten"), HasSubstr("priority: 'ten' is not a number from -256 to 255"));
  EXPECT_THAT(ErrorOf("priority=5,max_priority=256"), HasSubstr("'256' is not a number from -256 to 255"));
  EXPECT_THAT(ErrorOf("weight=0"), HasSubstr("from 1 to 10000"));
  EXPECT_THAT(ErrorOf("utilization=101"), HasSubstr("from 0 to 100"));
  EXPECT_THAT(ErrorOf("partition=urgent"),
              HasSubstr("'partition=urgent' is not a rule, as partition=urgent:priority=10"));
  EXPECT_THAT(ErrorOf("partition=urgent:"), HasSubstr("is not a rule"));
  EXPECT_THAT(ErrorOf("user=me:priority=1"), HasSubstr("is not a setting"));
  EXPECT_THAT(ErrorOf("priority"), HasSubstr("'' is not a number"));
  EXPECT_THAT(ErrorOf("nice=4"), HasSubstr("'nice=4' is not a setting"));
  EXPECT_THAT(ErrorOf("shards=0"), HasSubstr("'shards=0' is not a number of shards of each GPU"));
  EXPECT_THAT(ErrorOf("xsched=bin/xsched"), HasSubstr("is not the path of xsched"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("is not a setting"));
}

TEST(SlurmSettings, a_wrong_rule_is_found_also_by_jobs_that_it_is_not_about) {
  EXPECT_THAT(ErrorOf("partition=other:priority=1000"), HasSubstr("is not a number"));
}

}  // namespace
}  // namespace xsched::slurm
