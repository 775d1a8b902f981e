// Policies, shown a device and asked who runs.
#include <gtest/gtest.h>

#include <vector>

#include "sched/policy/policies.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kNow{milliseconds(100)};
constexpr Duration kTimeslice = milliseconds(5);

QueueView View(uint64_t id, Priority priority, Utilization utilization = 100) {
  QueueView view{};
  view.id = QueueId{id};
  view.hints.priority = view.priority = priority;
  view.hints.utilization = utilization;
  return view;
}

TEST(HighestPriorityFirst, the_most_urgent_run_side_by_side) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 5), View(3, 5), View(4, -9)};
  EXPECT_EQ(HighestPriorityFirstPolicy().Decide(kNow, kTimeslice, ready), kNever);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  EXPECT_TRUE(ready[2].run);
  EXPECT_FALSE(ready[3].run);
}

TEST(HighestPriorityFirst, inherited_priority_counts) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 5)};
  ready[0].priority = 5;
  HighestPriorityFirstPolicy().Decide(kNow, kTimeslice, ready);
  EXPECT_TRUE(ready[0].run);
}

TEST(HighestPriorityFirst, no_execute_runs_only_when_nobody_else_is_ready) {
  std::vector<QueueView> ready = {View(1, PRIORITY_NO_EXECUTE), View(2, PRIORITY_MIN)};
  HighestPriorityFirstPolicy().Decide(kNow, kTimeslice, ready);
  EXPECT_FALSE(ready[0].run);
  std::vector<QueueView> alone = {View(1, PRIORITY_NO_EXECUTE)};
  HighestPriorityFirstPolicy().Decide(kNow, kTimeslice, alone);
  EXPECT_TRUE(alone[0].run);
}

TEST(HighestPriorityFirst, only_a_higher_priority_can_hold_a_queue) {
  EXPECT_TRUE(HighestPriorityFirstPolicy().CanHold(Hints{.priority = 0}, Hints{.priority = 1}));
  EXPECT_FALSE(HighestPriorityFirstPolicy().CanHold(Hints{.priority = 1}, Hints{.priority = 1}));
}

TEST(UtilizationPartition, one_queue_runs_at_a_time_for_its_slice) {
  std::vector<QueueView> ready = {View(1, 0, 75), View(2, 0, 25)};
  TimePoint ask_at = UtilizationPartitionPolicy().Decide(kNow, kTimeslice, ready);
  EXPECT_TRUE(ready[0].run);
  EXPECT_FALSE(ready[1].run);
  EXPECT_EQ(ask_at, kNow + std::chrono::microseconds(7500)) << "75 of 100, two queues, 5 ms each on average";
}

TEST(UtilizationPartition, no_share_means_only_when_nobody_with_a_share_is_ready) {
  std::vector<QueueView> ready = {View(1, 0, 0), View(2, 0, 50)};
  UtilizationPartitionPolicy().Decide(kNow, kTimeslice, ready);
  EXPECT_FALSE(ready[0].run);
  std::vector<QueueView> alone = {View(1, 0, 0)};
  EXPECT_EQ(UtilizationPartitionPolicy().Decide(kNow, kTimeslice, alone), kNever);
  EXPECT_TRUE(alone[0].run);
}

TEST(UtilizationPartition, idle_time_is_no_credit) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 0)};
  ready[0].service = milliseconds(5000);
  ready[1].newly_ready = true;
  UtilizationPartitionPolicy().Decide(kNow, kTimeslice, ready);
  ready[1].newly_ready = false;
  ready[1].service += milliseconds(6);
  ready[0].running = ready[1].running = false;
  UtilizationPartitionPolicy().Decide(kNow + milliseconds(6), kTimeslice, ready);
  EXPECT_TRUE(ready[0].run) << "six milliseconds later it is the old queue's turn, not five seconds later";
}

// Who used the device while the others were away owes them one timeslice at most.
TEST(UtilizationPartition, time_used_alone_is_no_debt) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 0)};
  ready[0].service = std::chrono::seconds(100);  // long ago, alone; now it is back
  ready[0].newly_ready = true;
  ready[1].service = milliseconds(100);
  Duration used[2] = {};
  TimePoint now = kNow;
  for (int i = 0; i < 1000; ++i) {
    UtilizationPartitionPolicy().Decide(now, kTimeslice, ready);
    now += milliseconds(1);
    for (size_t q = 0; q < 2; ++q) {
      ready[q].newly_ready = false;
      if (ready[q].run && !ready[q].running) ready[q].running_since = now - milliseconds(1);
      ready[q].running = ready[q].run;
      if (!ready[q].run) continue;
      ready[q].service += milliseconds(1);
      used[q] += milliseconds(1);
    }
  }
  EXPECT_NEAR(static_cast<double>(used[0] / milliseconds(1)), 500, 10);
}

TEST(UtilizationPartition, a_newcomer_starts_level_however_long_the_others_have_been_there) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 0)};
  ready[0].service = std::chrono::seconds(100);
  ready[1].newly_ready = true;
  UtilizationPartitionPolicy().Decide(kNow, kTimeslice, ready);
  ready[1].newly_ready = false;
  ready[1].service += milliseconds(1);
  UtilizationPartitionPolicy().Decide(kNow + milliseconds(6), kTimeslice, ready);
  EXPECT_TRUE(ready[0].run) << "a millisecond's credit is used up";
}

TEST(UtilizationPartition, going_idle_is_no_way_out_of_a_debt) {
  std::vector<QueueView> ready = {View(1, 0), View(2, 0)};
  ready[0].service = milliseconds(104);
  ready[1].service = milliseconds(100);
  ready[0].newly_ready = true;
  UtilizationPartitionPolicy().Decide(kNow, kTimeslice, ready);
  EXPECT_FALSE(ready[0].run);
}

TEST(Policies, are_found_by_type_and_by_name_in_any_case) {
  EXPECT_EQ(FindPolicyByName("hpf"), &HighestPriorityFirstPolicy());
  EXPECT_EQ(FindPolicyByName("UP"), &UtilizationPartitionPolicy());
  EXPECT_EQ(FindPolicyByName("XYZ"), nullptr);
  EXPECT_EQ(FindPolicy(kPolicyUtilizationPartition), &UtilizationPartitionPolicy());
  EXPECT_EQ(FindPolicy(kPolicyKEarliestDeadlineFirst), nullptr);
  EXPECT_STREQ(PolicyName(kPolicyKEarliestDeadlineFirst), "KEDF");
  EXPECT_STREQ(PolicyName(static_cast<XPolicyType>(999)), "?");
}

}  // namespace
}  // namespace xsched::sched
