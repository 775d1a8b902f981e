// Heterogeneous highest priority first: over several devices.
#include <gtest/gtest.h>

#include "sched/testing/timeline.h"

namespace xsched::sched::hhpf {
namespace {

using std::chrono::milliseconds;

class HeterogeneousHighestPriorityFirst : public Timeline {
 protected:
  HeterogeneousHighestPriorityFirst() {
    scheduler_.SetPolicy(*FindPolicy(kPolicyHeterogeneousHighestPriorityFirst));
    sliceable_ = false;
  }
  bool IsGated(uint64_t id) const { return sink_.Of(QueueId{id}).gated; }

  static constexpr uint64_t kNpu = 8;
};

TEST_F(HeterogeneousHighestPriorityFirst,
       a_queue_is_held_while_a_more_urgent_one_has_work_on_another_device) {
  Add(1, 5, kGpu);
  Add(2, 0, kNpu);
  Busy(2);
  EXPECT_TRUE(Runs(2));
  Busy(1);
  EXPECT_TRUE(Runs(1) && !Runs(2));
  Finish(1);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(2));
}

TEST_F(HeterogeneousHighestPriorityFirst, equals_run_on_all_devices) {
  Add(1, 5, kGpu);
  Add(2, 5, kNpu);
  Add(3, 0, kNpu);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  EXPECT_TRUE(Runs(1) && Runs(2) && !Runs(3));
}

TEST_F(HeterogeneousHighestPriorityFirst, a_queue_is_gated_only_while_a_queue_of_any_device_may_hold_it) {
  Add(2, 0, kNpu);
  EXPECT_FALSE(IsGated(2));
  Add(1, 5, kGpu);
  EXPECT_TRUE(IsGated(2) && !IsGated(1));
  scheduler_.RemoveQueue(QueueId{1}, now_);
  Decide();
  EXPECT_TRUE(IsGated(2)) << "its process may have another queue soon";
  scheduler_.RemoveProcess(ProcessId{1});
  Decide();
  EXPECT_FALSE(IsGated(2));
}

// The more urgent one may wait for what is held, in a way that the scheduler does not see.
TEST_F(HeterogeneousHighestPriorityFirst,
       the_watchdog_lets_held_devices_run_when_the_urgent_one_stands_still) {
  Add(1, 5, kGpu);
  Add(2, 0, kNpu);
  Busy(2);
  Busy(1);
  EXPECT_FALSE(Runs(2));
  bool ran = false;
  for (int i = 0; i < 300 && !ran; ++i) {
    Pass(milliseconds(1));
    ran = Runs(2);
  }
  EXPECT_TRUE(ran);
}

TEST_F(HeterogeneousHighestPriorityFirst, what_makes_progress_keeps_its_claim) {
  Add(1, 5, kGpu);
  Add(2, 0, kNpu);
  Busy(2);
  Busy(1);
  for (int i = 0; i < 1000; ++i) {
    Pass(milliseconds(1));
    RetireOne(1);
    ASSERT_FALSE(Runs(2)) << "after " << i << " ms";
  }
}

// Two policies must not each hold what the other lets run.
TEST_F(HeterogeneousHighestPriorityFirst, behind_another_policy_it_compares_what_that_one_lets_run) {
  PolicySetting setting = *FindPolicy(kPolicyActiveWindowFirst);
  ASSERT_TRUE(setting.Add({FindPolicy(kPolicyHeterogeneousHighestPriorityFirst), Granularity::kQueue}));
  scheduler_.SetPolicy(setting);
  Add(1, 0, kGpu);
  Add(2, 5, kGpu);
  Add(3, 0, kNpu);
  Add(4, 5, kNpu);
  for (uint64_t active : {1, 3}) scheduler_.SetFacts(QueueId{active}, {.window_active = true});
  for (uint64_t id : {1, 2, 3, 4}) Busy(id);
  EXPECT_TRUE(Runs(1) && !Runs(2) && Runs(3) && !Runs(4));
}

}  // namespace
}  // namespace xsched::sched::hhpf
