// The reason that an operator sees for a queue that has work and does not run.
#include "sched/testing/timeline.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

class WaitReasonTest : public Timeline {
 protected:
  WaitReason Reason(uint64_t id) { return StatsOf(id).wait_reason; }
  Duration Waited(uint64_t id) { return now_ - StatsOf(id).waiting_since; }
};

TEST_F(WaitReasonTest, a_queue_that_runs_or_has_no_work_waits_for_nothing) {
  Add(1, 0);
  Add(9, 5);
  EXPECT_EQ(Reason(1), WaitReason::kNone);
  Busy(1);
  EXPECT_EQ(Reason(1), WaitReason::kNone);
}

TEST_F(WaitReasonTest, a_held_queue_is_held_for_the_most_urgent_one_that_runs) {
  Add(1, 0);
  Add(5, 5);
  Add(9, 9);
  Busy(1);
  Busy(5);
  Pass(milliseconds(10));
  EXPECT_EQ(Reason(1), WaitReason::kHeld);
  EXPECT_EQ(StatsOf(1).waits_for, QueueId{5});
  EXPECT_EQ(Waited(1), milliseconds(10));
  Busy(9);
  Pass(milliseconds(5));
  EXPECT_EQ(StatsOf(1).waits_for, QueueId{9});
  EXPECT_EQ(Waited(1), milliseconds(15)) << "it has not run since";
  EXPECT_EQ(Waited(5), milliseconds(5));
}

TEST_F(WaitReasonTest, of_equals_the_one_that_has_run_for_longer_is_named) {
  Add(1, 0);
  Add(8, 9, kGpu, 8);
  Add(9, 9, kGpu, 8);
  Busy(1);
  Busy(9);
  Pass(milliseconds(1));
  Busy(8);
  EXPECT_EQ(StatsOf(1).waits_for, QueueId{9});
}

TEST_F(WaitReasonTest, inherited_urgency_counts) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 9);
  Busy(1);
  Busy(2);
  Dependency dependency{QueueId{1}, 3};
  scheduler_.SetDependencies(QueueId{9}, {&dependency, 1});
  Busy(9);
  EXPECT_EQ(Reason(1), WaitReason::kNone);
  EXPECT_EQ(Reason(2), WaitReason::kHeld);
}

TEST_F(WaitReasonTest, a_policy_of_turns_makes_equals_wait_for_their_turn) {
  sliceable_ = false;
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Add(1, 0);
  Add(2, 0);
  Busy(1);
  Busy(2);
  Pass(milliseconds(1));
  EXPECT_EQ(Reason(1), WaitReason::kNone);
  EXPECT_EQ(Reason(2), WaitReason::kTurn);
  EXPECT_EQ(StatsOf(2).waits_for, QueueId{1});
  Add(3, 0);
  scheduler_.SetHints(QueueId{3}, Hints{.utilization = 0});
  Busy(3);
  EXPECT_EQ(Reason(3), WaitReason::kHeld) << "it has no share";
  EXPECT_EQ(StatsOf(3).waits_for, QueueId{1});
}

TEST_F(WaitReasonTest, a_process_that_is_off_the_device_is_said_to_be) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Busy(1);
  Busy(2);
  Pass(milliseconds(20));
  EXPECT_EQ(Reason(1), WaitReason::kNone);
  EXPECT_EQ(Reason(2), WaitReason::kOffDevice);
  EXPECT_EQ(StatsOf(2).waits_for, QueueId{1});
  EXPECT_EQ(Waited(2), milliseconds(20));
}

TEST_F(WaitReasonTest, a_stalled_queue_is_said_to_be_since_it_was_first_asked) {
  Add(1, 0);
  Add(9, 5);
  Busy(1);
  Busy(9);
  Pass(milliseconds(50));
  EXPECT_EQ(Reason(9), WaitReason::kNone);
  Pass(milliseconds(300));
  EXPECT_EQ(Reason(9), WaitReason::kStalled);
  EXPECT_GE(Waited(9), milliseconds(349));
  EXPECT_LE(Waited(9), milliseconds(350));
}

TEST_F(WaitReasonTest, an_absent_queue_is_said_to_be_since_it_has_work) {
  Add(1, 0);
  SetAbsent(1, true);
  Pass(milliseconds(10));
  EXPECT_EQ(Reason(1), WaitReason::kNone);
  Busy(1);
  Pass(milliseconds(3));
  EXPECT_EQ(Reason(1), WaitReason::kAbsent);
  EXPECT_EQ(Waited(1), milliseconds(3));
}

}  // namespace
}  // namespace xsched::sched
