// Utilization partition: which queue of a device it lets run.
#include <gtest/gtest.h>

#include "sched/testing/busy_device.h"
#include "sched/testing/policy_device.h"

namespace xsched::sched::up {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kNow = PolicyDevice::kNow;

const Policy& UtilizationPartition() { return *FindPolicy(kPolicyUtilizationPartition); }

QueueView Queue(uint64_t id, Utilization utilization = 100) { return View(id, {.utilization = utilization}); }

TEST(UtilizationPartition, one_queue_runs_at_a_time_for_its_slice) {
  PolicyDevice ready = {Queue(1, 75), Queue(2, 25)};
  TimePoint ask_at = ready.Decide(UtilizationPartition());
  EXPECT_TRUE(ready[0].run);
  EXPECT_FALSE(ready[1].run);
  EXPECT_EQ(ask_at, kNow + std::chrono::microseconds(7500)) << "75 of 100, two queues, 5 ms each on average";
}

TEST(UtilizationPartition, no_share_means_only_when_nobody_with_a_share_is_ready) {
  PolicyDevice ready = {Queue(1, 0), Queue(2, 50)};
  ready.Decide(UtilizationPartition());
  EXPECT_FALSE(ready[0].run);
  PolicyDevice alone = {Queue(1, 0)};
  EXPECT_EQ(alone.Decide(UtilizationPartition()), kNever);
  EXPECT_TRUE(alone[0].run);
}

TEST(UtilizationPartition, idle_time_is_no_credit) {
  PolicyDevice ready = {Queue(1), Queue(2)};
  ready[0].service = milliseconds(5000);
  ready[1].newly_ready = true;
  ready.Decide(UtilizationPartition());
  ready[1].newly_ready = false;
  ready[1].service += milliseconds(6);
  ready[0].running = ready[1].running = false;
  ready.Decide(UtilizationPartition(), kNow + milliseconds(6));
  EXPECT_TRUE(ready[0].run) << "six milliseconds later it is the old queue's turn, not five seconds later";
}

// A queue that used the device while the others were idle owes them at most one timeslice.
TEST(UtilizationPartition, time_used_alone_is_no_debt) {
  PolicyDevice ready = {Queue(1), Queue(2)};
  ready[0].service = std::chrono::seconds(100);  // received long ago, alone
  ready[0].newly_ready = true;
  ready[1].service = milliseconds(100);
  Duration used[2] = {};
  TimePoint now = kNow;
  for (int i = 0; i < 1000; ++i) {
    ready.Decide(UtilizationPartition(), now);
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
  PolicyDevice ready = {Queue(1), Queue(2)};
  ready[0].service = std::chrono::seconds(100);
  ready[1].newly_ready = true;
  ready.Decide(UtilizationPartition());
  ready[1].newly_ready = false;
  ready[1].service += milliseconds(1);
  ready.Decide(UtilizationPartition(), kNow + milliseconds(6));
  EXPECT_TRUE(ready[0].run) << "a millisecond's credit is used up";
}

TEST(UtilizationPartition, going_idle_is_no_way_out_of_a_debt) {
  PolicyDevice ready = {Queue(1), Queue(2)};
  ready.Decide(UtilizationPartition());
  ASSERT_TRUE(ready[0].run);
  ready[0].service += milliseconds(4);
  ready[0].newly_ready = true;  // it was idle for a moment
  ready.Decide(UtilizationPartition(), kNow + milliseconds(4));
  EXPECT_FALSE(ready[0].run);
}

TEST(UtilizationPartition, of_two_that_wake_after_a_pause_the_second_waits_for_one_slice) {
  BusyDevice device(UtilizationPartition(), {Queue(1), Queue(2)});
  device.Pass(std::chrono::seconds(1));
  ASSERT_EQ(device[0].service, device[1].service);
  const QueueView second = device.Leave(1);
  const QueueView first = device.Leave(0);
  device.now += std::chrono::seconds(1);
  device.Return(first);
  device.Pass(milliseconds(1));
  device.Return(second);
  device.Pass(milliseconds(4));
  EXPECT_EQ(device[1].service, second.service);
  device.Pass(milliseconds(1));
  EXPECT_EQ(device[1].service, second.service + milliseconds(1)) << "the first one has had its 5 ms";
}

}  // namespace
}  // namespace xsched::sched::up
