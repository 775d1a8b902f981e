// Which policies decide and about what: its text, and how the policies of a chain decide together.
#include "sched/core/policy_setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"
#include "sched/testing/timeline.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

PolicySetting Setting(const char* text) {
  Result<PolicySetting> setting = ParsePolicySetting(text);
  if (setting) return *setting;
  ADD_FAILURE() << setting.error().text();
  return *FindPolicy(kDefaultPolicy);
}

std::string ErrorOf(const char* text) {
  Result<PolicySetting> setting = ParsePolicySetting(text);
  return setting ? "" : setting.error().text();
}

std::string TextOf(const PolicySetting& setting) {
  char text[kPolicyTextSize];
  WritePolicySetting(setting, text);
  return text;
}

// ---- the text ----

TEST(PolicySettingText, is_read_in_any_case_and_written_with_what_is_not_usual) {
  EXPECT_EQ(TextOf(Setting("hpf")), "HPF");
  EXPECT_EQ(TextOf(Setting("up:Process")), "UP:process");
  EXPECT_EQ(TextOf(Setting("UP:queue")), "UP") << "that is what UP decides about by itself";
  EXPECT_EQ(TextOf(Setting("up:TENANT/cfs")), "UP:tenant/CFS");
  EXPECT_EQ(TextOf(Setting("PUP")), "PUP");
  EXPECT_EQ(TextOf(Setting("PUP:queue")), "PUP:queue");
  EXPECT_EQ(TextOf(Setting("hpf/cfs:process/kedf")), "HPF/CFS:process/KEDF");
}

TEST(PolicySettingText, says_what_is_wrong_with_it) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("there is no policy"));
  EXPECT_THAT(ErrorOf("FIFO"), HasSubstr("there is no policy FIFO"));
  EXPECT_THAT(ErrorOf("HPF/"), HasSubstr("there is no policy"));
  EXPECT_THAT(ErrorOf("HPF:device"), HasSubstr("not by device"));
  EXPECT_THAT(ErrorOf("HPF/UP/CFS/KEDF"), HasSubstr("at most 3"));
  EXPECT_THAT(ErrorOf(std::string(200, 'P').c_str()), HasSubstr("characters"));
}

TEST(PolicySettingText, has_room_for_the_longest_chain) {
  size_t longest = 0;
  for (PolicyGetter policy : Policies())
    longest = std::max(longest, std::string(policy().info().name).size());
  EXPECT_LT(kMostPolicies * (longest + std::string(":process/").size()), kPolicyTextSize);
}

// ---- who can hold whom ----

ShownHints OfPriority(Priority priority) { return {{.priority = priority}, {.priority = priority}}; }

TEST(PolicyChain, a_lower_class_never_holds_a_higher_one_whatever_divides_the_classes) {
  const PolicySetting setting = Setting("HPF/CFS");
  EXPECT_TRUE(setting.CanHold(OfPriority(0), OfPriority(1)));
  EXPECT_FALSE(setting.CanHold(OfPriority(1), OfPriority(0)));
  EXPECT_TRUE(setting.CanHold(OfPriority(1), OfPriority(1))) << "they take turns within their class";
  EXPECT_TRUE(setting.HasBetterClaim(OfPriority(1), OfPriority(0)));
  EXPECT_FALSE(setting.HasBetterClaim(OfPriority(0), OfPriority(1)));
  EXPECT_FALSE(setting.HasBetterClaim(OfPriority(1), OfPriority(1)));
}

TEST(PolicyChain, queues_of_one_process_hold_each_other_only_by_what_is_decided_about_queues) {
  EXPECT_FALSE(Setting("CFS:process").CanHold(OfPriority(0), OfPriority(0), /*same_process=*/true));
  EXPECT_TRUE(Setting("CFS:process").CanHold(OfPriority(0), OfPriority(0)));
  EXPECT_TRUE(Setting("CFS:process/KEDF").CanHold(OfPriority(0), OfPriority(0), /*same_process=*/true));
}

TEST(PolicyChain, slices_are_those_of_the_first_policy_that_holds_queues_as_well) {
  ProcessView views[] = {{.id = ProcessId{1}, .priority = 1, .utilization = 50, .facts = {}, .slice = {}},
                         {.id = ProcessId{2}, .priority = 0, .utilization = 50, .facts = {}, .slice = {}}};
  EXPECT_EQ(Setting("UP").Divide(views, 1), Division::kAlone);
  EXPECT_EQ(Setting("HPF/UP").Divide(views, 1), Division::kBesideHolding);
  EXPECT_EQ(views[1].slice, kShortestSlice);
  EXPECT_EQ(Setting("UP/HPF").Divide(views, 1), Division::kBesideHolding)
      << "slices that hold nobody would leave out HPF";
  EXPECT_EQ(views[0].slice, kShortestSlice);
  EXPECT_EQ(Setting("KEDF").Divide(views, 1), Division::kBesideHolding);
  EXPECT_EQ(Setting("KEDF").Divide(views, 2), Division::kNone) << "several run together";
}

// ---- decisions ----

class Chain : public Timeline {
 protected:
  Chain() { sliceable_ = false; }
  void Use(const char* text) { scheduler_.SetPolicy(Setting(text)); }
  void Deadline(uint64_t id, int64_t deadline_us) {
    Hints hints = *scheduler_.GetHints(QueueId{id});
    hints.deadline_us = deadline_us;
    scheduler_.SetHints(QueueId{id}, hints);
  }
};

TEST_F(Chain, each_policy_decides_among_those_that_the_one_before_lets_run) {
  Use("HPF/KEDF");
  Add(1, 0);
  Add(2, 5);
  Add(3, 5);
  Deadline(1, 1000);
  Deadline(2, 9000);
  Deadline(3, 4000);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  EXPECT_TRUE(!Runs(1) && !Runs(2) && Runs(3)) << "the earliest deadline of the highest class";
  Finish(3);
  Pass(milliseconds(1));
  EXPECT_TRUE(!Runs(1) && Runs(2));
  Finish(2);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(1));
}

TEST_F(Chain, processes_share_and_deadlines_order_the_queues_of_each) {
  Use("CFS:process/KEDF");
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  Deadline(1, 1'000'000);
  Deadline(2, 500'000);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  int turns_of_20 = 0;
  for (int i = 0; i < 400; ++i) {
    Pass(milliseconds(1));
    ASSERT_EQ(Runs(1) + Runs(2) + Runs(3), 1);
    ASSERT_FALSE(Runs(1)) << "the other queue of its process is due before";
    turns_of_20 += Runs(3);
    for (uint64_t id : {2, 3}) {
      if (Runs(id)) RetireOne(id);
    }
  }
  EXPECT_NEAR(turns_of_20, 200, 6);
}

// A process as a whole is what the outer policy sees, and the inner one sees the queues' own priorities.
TEST_F(Chain, an_inner_policy_sees_the_queues_own_hints) {
  Use("CFS:process/HPF");
  Add(1, 0, kGpu, 10);
  Add(2, 7, kGpu, 10);
  Busy(1);
  Busy(2);
  EXPECT_TRUE(!Runs(1) && Runs(2));
}

TEST_F(Chain, an_inherited_priority_is_seen_by_every_policy) {
  Use("CFS:process/HPF");
  Add(1, 0, kGpu, 10);
  Add(2, 5, kGpu, 10);
  Add(3, 7, kGpu, 10);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  const Dependency dependency{QueueId{1}, kEndless};
  scheduler_.SetDependencies(QueueId{3}, {&dependency, 1});
  Decide();
  EXPECT_TRUE(Runs(1) && !Runs(2)) << "queue 3 waits for it";
}

// What becomes ready while a higher class runs begins level when its own class runs again.
TEST_F(Chain, a_newcomer_in_a_held_class_begins_level) {
  Use("HPF/UP");
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Busy(1);
  for (int i = 0; i < 500; ++i) {
    Pass(milliseconds(1));
    RetireOne(1);
  }
  Busy(9);
  Pass(milliseconds(1));
  Busy(2);
  Pass(milliseconds(1));
  EXPECT_TRUE(!Runs(1) && !Runs(2));
  Finish(9);
  int turns_of_first = 0;
  for (int i = 0; i < 100; ++i) {
    Pass(milliseconds(1));
    turns_of_first += Runs(1);
    for (uint64_t id : {1, 2}) {
      if (Runs(id)) RetireOne(id);
    }
  }
  EXPECT_NEAR(turns_of_first, 50, 6);
}

TEST_F(Chain, a_change_of_what_a_policy_decides_about_takes_effect_at_once) {
  Use("UP");
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Busy(1);
  Busy(2);
  EXPECT_NE(Runs(1), Runs(2));
  EXPECT_TRUE(sink_.Of(QueueId{1}).gated);
  Use("UP:process");
  Decide();
  EXPECT_TRUE(Runs(1) && Runs(2));
  EXPECT_FALSE(sink_.Of(QueueId{1}).gated) << "there is no other process";
}

// ---- priority classes before every other policy ----

TEST(PriorityClasses, before_any_policy_never_run_a_class_while_a_higher_one_has_work) {
  constexpr uint64_t kQueues = 6;
  for (PolicyGetter second : Policies()) {
    for (Granularity by : {Granularity::kQueue, Granularity::kProcess}) {
      PolicySetting setting = *FindPolicy(kPolicyHighestPriorityFirst);
      setting.Add({&second(), by});
      std::mt19937 random(1);
      auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
      Scheduler scheduler{SchedulerConfig{}};
      scheduler.SetPolicy(setting);
      Recorder sink;
      TimePoint now{milliseconds(1)};
      Priority priorities[kQueues];
      uint64_t retired[kQueues] = {};
      bool busy[kQueues] = {};
      for (uint64_t i = 0; i < kQueues; ++i) {
        priorities[i] = below(3);
        scheduler.AddQueue(QueueId{i + 1}, ProcessId{i % 3}, DeviceId{1},
                           {.priority = priorities[i], .deadline_us = 1000 * (1 + below(20))}, now);
      }
      for (int step = 0; step < 2000; ++step) {
        now += milliseconds(1);
        for (uint64_t i = 0; i < kQueues; ++i) {
          const QueueId id{i + 1};
          if (below(10) == 0) busy[i] = !busy[i];
          retired[i] += sink.Of(id).run && busy[i];
          scheduler.Progress(id, busy[i] ? retired[i] + 1 : retired[i], retired[i], now);
        }
        scheduler.Decide(now, sink);
        scheduler.Decide(now += microseconds(500), sink);  // the grace periods are over
        Priority highest = PRIORITY_NO_EXECUTE;
        for (uint64_t i = 0; i < kQueues; ++i) {
          if (busy[i]) highest = std::max(highest, priorities[i]);
        }
        bool any = false;
        for (uint64_t i = 0; i < kQueues; ++i) {
          if (!busy[i] || !sink.Of(QueueId{i + 1}).run) continue;
          any = true;
          ASSERT_EQ(priorities[i], highest) << TextOf(setting) << ", step " << step;
        }
        ASSERT_TRUE(any || highest == PRIORITY_NO_EXECUTE) << TextOf(setting) << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace xsched::sched
