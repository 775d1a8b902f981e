// Completely fair scheduler: what a priority is worth.
#include <gtest/gtest.h>

#include "sched/sim/simulator.h"
#include "sched/testing/policy_device.h"

namespace xsched::sched::cfs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Policy& CompletelyFair() { return *FindPolicy(kPolicyCompletelyFairScheduler); }

SimulatedQueue Busy(Priority priority) {
  SimulatedQueue queue;
  queue.hints.priority = priority;
  queue.command = microseconds(100);
  return queue;
}

double ShareOfFirst(Priority first, Priority second) {
  const SimulationResult result = Simulate(CompletelyFair(), {Busy(first), Busy(second)}, seconds(2));
  return std::chrono::duration<double>(result.queues[0].device_time) /
         std::chrono::duration<double>(result.busy);
}

TEST(CompletelyFair, equal_priorities_share_equally) { EXPECT_NEAR(ShareOfFirst(7, 7), 0.5, 0.01); }

TEST(CompletelyFair, each_step_of_priority_is_a_factor_of_1_2) {
  EXPECT_NEAR(ShareOfFirst(1, 0), 1.2 / 2.2, 0.01);
  EXPECT_NEAR(ShareOfFirst(0, -4), 2.0736 / 3.0736, 0.01);
  EXPECT_NEAR(ShareOfFirst(-100, -96), 1 / 3.0736, 0.01);
}

// Unlike in XSched 1.2, where it had everything for as long as the others had run before.
TEST(CompletelyFair, a_newcomer_gets_its_share_and_not_what_it_has_missed) {
  PolicyDevice ready = {View(1, {}), View(2, {})};
  ready[0].service = seconds(100);
  ready[1].newly_ready = true;
  ready.Decide(CompletelyFair());
  ready[1].newly_ready = false;
  ready[1].service += milliseconds(6);
  ready.Decide(CompletelyFair(), PolicyDevice::kNow + milliseconds(6));
  EXPECT_TRUE(ready[0].run);
}

TEST(CompletelyFair, the_lowest_priority_gets_on_beside_the_highest) {
  // 1.2 to the power of 40 is 1,470: about 3 ms in 4 s.
  const SimulationResult result = Simulate(CompletelyFair(), {Busy(20), Busy(-20)}, seconds(4));
  EXPECT_GT(result.queues[1].device_time, Duration::zero());
  EXPECT_LT(result.queues[1].device_time, milliseconds(40));
}

// The lowest one has received more than a number can hold, in units of what the others receive.
TEST(CompletelyFair, equal_queues_share_equally_however_low_another_one_is) {
  const SimulationResult result = Simulate(CompletelyFair(), {Busy(-100), Busy(100), Busy(100)}, seconds(2));
  EXPECT_NEAR(std::chrono::duration<double>(result.queues[1].device_time) /
                  std::chrono::duration<double>(result.busy),
              0.5, 0.01);
}

TEST(CompletelyFair, who_may_never_run_beside_others_waits_for_them) {
  PolicyDevice ready = {View(1, {.priority = PRIORITY_NO_EXECUTE}), View(2, {.priority = PRIORITY_MIN})};
  EXPECT_EQ(ready.Decide(CompletelyFair()), kNever);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  EXPECT_FALSE(CompletelyFair().CanHold({}, {.priority = PRIORITY_NO_EXECUTE}));
}

TEST(CompletelyFair, slices_have_the_proportion_of_the_weights_or_only_the_running_one_is_on_the_device) {
  ProcessView processes[2] = {{ProcessId{1}, {}, 4, 100, {}}, {ProcessId{2}, {}, 0, 100, {}}};
  EXPECT_EQ(CompletelyFair().Divide(processes), Division::kAlone);
  EXPECT_NEAR(
      static_cast<double>(processes[0].slice.count()) / static_cast<double>(processes[1].slice.count()),
      2.0736, 0.001);
  processes[0].priority = 100;
  EXPECT_EQ(CompletelyFair().Divide(processes), Division::kBesideHolding) << "82 million to 1";
  EXPECT_EQ(processes[0].slice, kShortestSlice);
  EXPECT_EQ(processes[1].slice, kShortestSlice);
}

}  // namespace
}  // namespace xsched::sched::cfs
