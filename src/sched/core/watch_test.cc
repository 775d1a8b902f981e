// The watchdog in virtual time: which queues it lets run, for which queue, when, and for how long.
#include "sched/core/watch.h"

#include "sched/testing/timeline.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kHigh = 1;
constexpr uint64_t kMiddle = 2;
constexpr uint64_t kMiddleToo = 3;
constexpr uint64_t kLow = 4;

class WatchdogTest : public Timeline {
 protected:
  // How long `id` is held from now on, up to `most`.
  Duration HeldFor(uint64_t id, Duration most) {
    const TimePoint begin = now_;
    while (!Runs(id) && now_ < begin + most) Pass(microseconds(100));
    return now_ - begin;
  }
  // For how much of the next `time` the queue `id` may run.
  Duration RunsIn(Duration time, uint64_t id) {
    Duration ran{};
    for (Duration passed{}; passed < time; passed += microseconds(100)) {
      if (Runs(id)) ran += microseconds(100);
      Pass(microseconds(100));
    }
    return ran;
  }
};

TEST_F(WatchdogTest, a_hidden_wait_goes_on_80_ms_after_it_began_every_time) {
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  // One long command of more than a second must not make later waits longer.
  Busy(kHigh);
  Pass(milliseconds(1200));
  RetireOne(kHigh);
  for (int step = 0; step < 20; ++step) {
    EXPECT_FALSE(Runs(kLow));
    const Duration held = HeldFor(kLow, milliseconds(500));
    EXPECT_GT(held, milliseconds(79)) << step;
    EXPECT_LT(held, milliseconds(83)) << step;
    RetireOne(kLow);
    RetireOne(kHigh);
  }
  EXPECT_EQ(StatsOf(kHigh).incidents, 21u);
}

TEST_F(WatchdogTest, a_full_queue_that_takes_launches_is_at_work_though_it_reports_nothing) {
  uint32_t moves = 0;
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  uint64_t launched = 1020;
  Progress(kHigh, launched, 0);
  for (int i = 0; i < 200; ++i) {
    Pass(milliseconds(2));
    EXPECT_FALSE(Runs(kLow));
    scheduler_.Moved(QueueId{kHigh}, ++moves, now_);
    Progress(kHigh, ++launched, 0);
  }
  EXPECT_EQ(StatsOf(kHigh).incidents, 0u);
  // No launch goes through any more: the queue may wait for one that is held.
  EXPECT_LT(HeldFor(kLow, milliseconds(500)), milliseconds(83));
}

TEST_F(WatchdogTest, launches_alone_are_no_progress) {
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  uint64_t launched = 1000;
  Progress(kHigh, launched, 0);
  for (int i = 0; i < 39; ++i) {
    Pass(milliseconds(2));
    EXPECT_FALSE(Runs(kLow));
    scheduler_.Moved(QueueId{kHigh}, 0, now_);
    Progress(kHigh, ++launched, 0);
  }
  EXPECT_LT(HeldFor(kLow, milliseconds(500)), milliseconds(5));
}

TEST_F(WatchdogTest, windows_double_and_the_claim_is_restored_for_80_ms_between_them) {
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kHigh);
  EXPECT_FALSE(StatsOf(kHigh).stalled);
  for (milliseconds window(10); window < milliseconds(1280); window *= 2) {
    EXPECT_NEAR(static_cast<double>(HeldFor(kLow, milliseconds(200)) / microseconds(1)), 80000, 500);
    EXPECT_TRUE(StatsOf(kHigh).stalled);
    Pass(window - microseconds(200));
    EXPECT_TRUE(Runs(kLow)) << window.count();
    Pass(microseconds(300));
    EXPECT_FALSE(Runs(kLow)) << window.count();
    EXPECT_TRUE(StatsOf(kHigh).stalled);
  }
  HeldFor(kLow, milliseconds(200));
  Pass(std::chrono::seconds(100));
  EXPECT_TRUE(Runs(kLow)) << "the last window stays open";
  EXPECT_EQ(StatsOf(kHigh).incidents, 1u);
  RetireOne(kHigh);
  EXPECT_FALSE(Runs(kLow));
  EXPECT_FALSE(StatsOf(kHigh).stalled);
  HeldFor(kLow, milliseconds(200));
  Pass(milliseconds(11));
  EXPECT_FALSE(Runs(kLow)) << "the next episode begins with a short window";
  EXPECT_EQ(StatsOf(kHigh).incidents, 2u);
}

TEST_F(WatchdogTest, a_long_command_keeps_most_of_its_claim) {
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kHigh);
  EXPECT_LE(RunsIn(milliseconds(200), kLow), milliseconds(30));
  EXPECT_LE(RunsIn(milliseconds(400), kLow), milliseconds(170));
}

TEST_F(WatchdogTest, a_window_gives_all_processes_the_drivers_slice_and_takes_it_back) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kMiddleToo, 5);
  Add(kLow, 0);
  for (uint64_t id : {kMiddle, kMiddleToo, kLow, kHigh}) Busy(id);
  ASSERT_EQ(SliceOf(kHigh), milliseconds(100));
  ASSERT_TRUE(IsOff(kMiddleToo) && IsOff(kLow));
  Pass(milliseconds(81));
  for (uint64_t id : {kHigh, kMiddle, kMiddleToo, kLow}) {
    EXPECT_TRUE(Runs(id)) << id;
    EXPECT_EQ(SliceOf(id), kDriversSlice) << id;
    EXPECT_FALSE(sink_.Of(QueueId{id}).sliced) << "slices stop nobody now: gates must";
  }
  Pass(milliseconds(11));
  EXPECT_FALSE(Runs(kMiddle) || Runs(kMiddleToo) || Runs(kLow));
  EXPECT_EQ(SliceOf(kHigh), milliseconds(100));
  EXPECT_TRUE(IsOff(kMiddleToo) && IsOff(kLow));
  Pass(milliseconds(79));
  ASSERT_TRUE(Runs(kLow));
  SetAbsent(kHigh, true);
  EXPECT_FALSE(StatsOf(kHigh).stalled);
  EXPECT_TRUE(Runs(kMiddle));
  EXPECT_FALSE(Runs(kLow)) << "an absent queue has no episode";
  EXPECT_FALSE(IsOff(kMiddle) || IsOff(kMiddleToo)) << "it has work and may stand on the device";
}

TEST_F(WatchdogTest, one_that_is_off_the_device_is_not_asked_and_its_time_does_not_count) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kMiddleToo, 5);
  Add(kLow, 0);
  for (uint64_t id : {kMiddle, kMiddleToo, kLow}) Busy(id);
  ASSERT_TRUE(IsOff(kMiddleToo));
  for (int i = 0; i < 70; ++i) {
    Pass(milliseconds(1));
    RetireOne(kMiddle);
  }
  ASSERT_TRUE(IsOff(kMiddleToo));
  EXPECT_EQ(Queries(kMiddleToo), 0);
  while (IsOff(kMiddleToo)) {
    Pass(milliseconds(1));
    RetireOne(kMiddle);
  }
  Pass(milliseconds(70));
  EXPECT_GT(Queries(kMiddleToo), 0);
  EXPECT_FALSE(StatsOf(kMiddleToo).stalled);
}

// A process with the shortest slice makes progress only if no other on the device has one. Each retires
// commands of 2 ms.
TEST_F(WatchdogTest, turns_go_on_whatever_the_watchdog_does_and_two_are_never_on_with_the_shortest_slice) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kMiddleToo, 5);
  Add(kLow, 0);
  for (uint64_t id : {kMiddle, kMiddleToo, kLow}) Busy(id);
  // They retire nothing at all for a second, then a command every 2 ms.
  for (int step = 0; step < 1500; ++step) {
    Pass(milliseconds(2));
    int shortest = 0;
    for (uint64_t id : {kMiddle, kMiddleToo, kLow}) shortest += SliceOf(id) == kShortestSlice;
    ASSERT_LE(shortest, 1);
    if (step < 500) continue;
    for (uint64_t id : {kMiddle, kMiddleToo}) {
      if (SliceOf(id) == kShortestSlice) RetireOne(id);
    }
  }
  EXPECT_GE(retired_[kMiddle], 450u);
  EXPECT_GE(retired_[kMiddleToo], 450u);
}

TEST_F(WatchdogTest, time_adds_up_over_the_tasks_of_a_more_urgent_queue) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kMiddle);  // and waits for something of kLow's
  uint64_t task = 0;
  const TimePoint begin = now_;
  while (!Runs(kLow) && now_ < begin + milliseconds(1000)) {
    ++task;
    Progress(kHigh, task, task - 1);
    Pass(milliseconds(2));
    Progress(kHigh, task, task);
    for (int i = 0; i < 18 && !Runs(kLow); ++i) Pass(milliseconds(1));
  }
  EXPECT_LE(now_ - begin, milliseconds(100));
}

TEST_F(WatchdogTest, a_queue_that_only_shares_the_device_by_turns_of_the_policy_is_not_stalled) {
  sliceable_ = false;
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  for (uint64_t id : {kHigh, kMiddle, kLow}) {
    Add(id, 0);
    Busy(id);
  }
  for (int i = 0; i < 2000; ++i) {
    Pass(milliseconds(1));
    if (Runs(kMiddle)) RetireOne(kMiddle);
    if (Runs(kLow)) RetireOne(kLow);
  }
  EXPECT_EQ(StatsOf(kHigh).incidents, 0u) << "each of the others has run meanwhile";
}

TEST_F(WatchdogTest, under_a_policy_of_shares_a_queue_without_a_share_runs_for_one_that_waits_for_it) {
  sliceable_ = false;
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  for (uint64_t id : {kHigh, kMiddle, kLow}) Add(id, 0);
  scheduler_.SetHints(QueueId{kLow}, Hints{.utilization = 0});
  for (uint64_t id : {kHigh, kMiddle, kLow}) Busy(id);
  for (int i = 0; i < 200 && !Runs(kLow); ++i) {
    Pass(milliseconds(1));
    RetireOne(kMiddle);
  }
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(WatchdogTest, a_more_urgent_queue_of_the_device_is_not_disturbed_by_the_window_of_another) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kMiddle);
  Pass(std::chrono::seconds(10));
  ASSERT_TRUE(Runs(kLow)) << "the window is open for good";
  const int changes = sink_.slice_changes;
  EXPECT_EQ(SliceOf(kHigh), milliseconds(100));
  for (uint64_t task = 1; task <= 20; ++task) {
    Progress(kHigh, task, task - 1);
    EXPECT_FALSE(Runs(kLow) || Runs(kMiddle));
    Pass(milliseconds(1));
    Progress(kHigh, task, task);
    Pass(milliseconds(10));
    EXPECT_TRUE(Runs(kLow) && Runs(kMiddle));
  }
  EXPECT_EQ(sink_.slice_changes, changes) << "slices do not change with every task";
}

TEST_F(WatchdogTest, one_that_was_held_earlier_and_leaves_does_not_make_a_later_one_wait_for_longer) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kLow, 0);
  Busy(kMiddle);
  Busy(kHigh);
  Pass(milliseconds(5));
  Busy(kLow);  // what kHigh waits for
  const TimePoint begin = now_;
  Pass(milliseconds(70));
  scheduler_.RemoveQueue(QueueId{kMiddle}, now_);
  Decide();
  HeldFor(kLow, milliseconds(500));
  EXPECT_LE(now_ - begin, milliseconds(82));
}

TEST_F(WatchdogTest, where_several_take_turns_and_none_retires_anything_their_time_counts_together) {
  sliceable_ = false;
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  for (uint64_t id : {kHigh, kMiddle, kMiddleToo, kLow}) Add(id, 0);
  scheduler_.SetHints(QueueId{kLow}, Hints{.utilization = 0});
  for (uint64_t id : {kHigh, kMiddle, kMiddleToo, kLow}) Busy(id);
  EXPECT_LE(HeldFor(kLow, milliseconds(500)), milliseconds(90));
}

TEST_F(WatchdogTest, nor_does_one_that_leaves_while_the_waiter_itself_is_held) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kMiddleToo, 0);
  Add(kLow, 0);
  Busy(kMiddleToo);
  Busy(kMiddle);  // waits for something of kLow's
  Pass(milliseconds(10));
  Busy(kLow);
  const TimePoint begin = now_;
  Pass(milliseconds(50));
  Progress(kHigh, 1, 0);
  scheduler_.RemoveQueue(QueueId{kMiddleToo}, now_);
  Pass(milliseconds(5));
  Progress(kHigh, 1, 1);
  HeldFor(kLow, milliseconds(500));
  EXPECT_LE(now_ - begin, milliseconds(90));
}

TEST_F(WatchdogTest, time_in_which_the_scheduler_itself_did_not_run_is_forgiven) {
  Add(kHigh, 10);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kHigh);
  Pass(milliseconds(10));
  now_ += std::chrono::seconds(5);
  Decide();
  EXPECT_FALSE(StatsOf(kHigh).stalled) << "its answer may be among what is still to be read";
  Pass(milliseconds(60));
  EXPECT_FALSE(StatsOf(kHigh).stalled);
  Pass(milliseconds(15));
  EXPECT_TRUE(StatsOf(kHigh).stalled);
}

TEST_F(WatchdogTest, removing_a_stalled_queue_ends_its_window) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kLow, 0);
  for (uint64_t id : {kLow, kMiddle, kHigh}) Busy(id);
  Pass(milliseconds(81));
  ASSERT_TRUE(Runs(kLow));
  scheduler_.RemoveQueue(QueueId{kHigh}, now_);
  Decide();
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(Runs(kMiddle));
}

TEST_F(WatchdogTest, the_window_of_one_does_not_make_another_wait_for_longer) {
  Add(kHigh, 10);
  Add(kMiddle, 10);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kHigh);
  Pass(milliseconds(10));
  Busy(kMiddle);
  const TimePoint begin = now_;
  HeldFor(kLow, milliseconds(200));
  Pass(milliseconds(1));
  RetireOne(kLow);
  RetireOne(kHigh);
  EXPECT_FALSE(Runs(kLow));
  HeldFor(kLow, milliseconds(200));
  EXPECT_LE(now_ - begin, milliseconds(85));
  EXPECT_EQ(StatsOf(kMiddle).incidents, 1u);
}

TEST_F(WatchdogTest, gaps_in_which_nobody_could_begin_to_work_are_no_end_of_a_hold) {
  Add(kHigh, 10);
  Add(kMiddle, 5);
  Add(kLow, 0);
  Busy(kLow);
  Busy(kMiddle);
  // kMiddle waits for kLow, and both are interrupted all the time; so is every hold of kLow, by 100 us.
  const TimePoint begin = now_;
  uint64_t task = 0;
  while (StatsOf(kMiddle).incidents == 0 && now_ < begin + milliseconds(1000)) {
    ++task;
    Progress(kHigh, task, task - 1);
    Pass(milliseconds(1));
    Progress(kHigh, task, task);
    Pass(milliseconds(3));
    SetAbsent(kMiddle, true);
    Pass(microseconds(100));
    SetAbsent(kMiddle, false);
  }
  EXPECT_LE(now_ - begin, milliseconds(130));
}

// ---- other devices ----

class WatchdogElsewhere : public WatchdogTest {
 protected:
  static constexpr uint64_t kElsewhere = 8;
  static constexpr uint64_t kTopElsewhere = 11;
  static constexpr uint64_t kMiddleElsewhere = 12;
  static constexpr uint64_t kLowElsewhere = 13;

  void SetUp() override {
    Add(kHigh, 10);
    Add(kLow, 0);
    Add(kTopElsewhere, 20, kElsewhere);
    Add(kMiddleElsewhere, 5, kElsewhere);
    Add(kLowElsewhere, 0, kElsewhere);
    for (uint64_t id : {kLow, kLowElsewhere, kMiddleElsewhere, kHigh}) Busy(id);
    ASSERT_FALSE(Runs(kLowElsewhere));
  }
  void PassWhileMiddleWorks(milliseconds time) {
    for (milliseconds passed{}; passed < time; passed += milliseconds(1)) {
      Pass(milliseconds(1));
      RetireOne(kMiddleElsewhere);
    }
  }
  // The first window does not help.
  void PassFirstWindow() {
    for (int i = 0; i < 100; ++i) {
      PassWhileMiddleWorks(milliseconds(1));
      ASSERT_FALSE(Runs(kLowElsewhere));
    }
  }
};

TEST_F(WatchdogElsewhere, from_the_second_window_on_what_may_be_waited_for_there_runs_as_well) {
  PassFirstWindow();
  PassWhileMiddleWorks(milliseconds(72));
  ASSERT_TRUE(Runs(kLow));
  EXPECT_TRUE(Runs(kLowElsewhere) && Runs(kMiddleElsewhere));
  EXPECT_EQ(SliceOf(kLowElsewhere), kDriversSlice);
  EXPECT_EQ(SliceOf(kMiddleElsewhere), kDriversSlice);
  PassWhileMiddleWorks(milliseconds(20));
  EXPECT_FALSE(Runs(kLow));
  EXPECT_FALSE(Runs(kLowElsewhere));
  EXPECT_TRUE(IsOff(kLowElsewhere));
  PassWhileMiddleWorks(milliseconds(79));
  ASSERT_TRUE(Runs(kLowElsewhere));
  RetireOne(kHigh);
  EXPECT_FALSE(Runs(kLowElsewhere)) << "progress ends it on all devices at once";
}

TEST_F(WatchdogElsewhere, a_queue_with_a_better_claim_there_is_not_disturbed) {
  PassFirstWindow();
  Busy(kTopElsewhere);
  for (int i = 0; i < 1000; ++i) {
    Pass(milliseconds(1));
    RetireOne(kTopElsewhere);
    ASSERT_FALSE(Runs(kLowElsewhere) || Runs(kMiddleElsewhere));
    ASSERT_EQ(SliceOf(kTopElsewhere), milliseconds(100));
  }
}

TEST_F(WatchdogElsewhere, a_queue_that_leaves_takes_its_window_with_it) {
  PassFirstWindow();
  PassWhileMiddleWorks(milliseconds(72));
  ASSERT_TRUE(Runs(kLowElsewhere));
  scheduler_.RemoveQueue(QueueId{kHigh}, now_);
  scheduler_.RemoveQueue(QueueId{kLow}, now_);
  Decide();
  EXPECT_FALSE(Runs(kLowElsewhere));
}

// The waiter has no rival on its own device, and is as urgent as the queue that runs on the other one.
TEST_F(WatchdogElsewhere, a_hidden_wait_ends_though_nobody_is_held_on_the_waiters_own_device) {
  scheduler_.RemoveQueue(QueueId{kLow}, now_);
  Finish(kHigh);
  Pass(milliseconds(30));
  EXPECT_TRUE(sink_.Of(QueueId{kHigh}).tracked) << "it must tell when it has work";
  EXPECT_FALSE(sink_.Of(QueueId{kHigh}).gated);
  Progress(kHigh, kEndless + 1, kEndless);
  const TimePoint begin = now_;
  while (!Runs(kLowElsewhere) && now_ < begin + milliseconds(500)) PassWhileMiddleWorks(milliseconds(1));
  EXPECT_LE(now_ - begin, milliseconds(175));
  EXPECT_EQ(SliceOf(kLowElsewhere), kDriversSlice);
}

TEST_F(WatchdogElsewhere, a_lone_queue_that_is_less_urgent_than_the_one_that_runs_there_is_not_tracked) {
  scheduler_.RemoveQueue(QueueId{kLow}, now_);
  scheduler_.SetHints(QueueId{kHigh}, Hints{.priority = 4});
  Decide();
  for (int i = 0; i < 500; ++i) {
    PassWhileMiddleWorks(milliseconds(1));
    ASSERT_EQ(sink_.Of(QueueId{kHigh}), Control{});
    ASSERT_FALSE(Runs(kLowElsewhere));
  }
  EXPECT_EQ(StatsOf(kHigh).incidents, 0u);
}

// ---- other devices, and other tenants ----

// On its own device, a queue of one tenant holds another one of that tenant, and retires nothing. On the
// other device, an urgent queue of a second tenant holds another one of that tenant.
class WatchdogOfTenants : public WatchdogTest {
 protected:
  static constexpr uint64_t kElsewhere = 8;
  static constexpr uint64_t kStalled = 11;
  static constexpr uint64_t kHeldByStalled = 12;
  static constexpr uint64_t kAwaited = 13;
  static constexpr uint64_t kOther = 14;

  void AddOf(uint64_t tenant, uint64_t id, Priority priority, uint64_t device = kGpu, uint64_t process = 0) {
    scheduler_.SetTenant(ProcessId{process == 0 ? id : process}, TenantId{tenant});
    Add(id, priority, device, process);
    Busy(id);
  }
  void SetUp() override {
    AddOf(2, kHigh, 10);
    AddOf(2, kLow, 0);
    AddOf(1, kStalled, 10, kElsewhere);
    AddOf(1, kHeldByStalled, 0, kElsewhere);
  }
  // For how much of the next `time` the queue `id` may run. Those of `working` retire something each
  // millisecond.
  double PartIn(milliseconds time, uint64_t id, std::initializer_list<uint64_t> working = {kHigh}) {
    Duration ran{};
    for (milliseconds passed{}; passed < time; passed += milliseconds(1)) {
      if (Runs(id)) ran += milliseconds(1);
      Pass(milliseconds(1));
      for (const uint64_t one : working) RetireOne(one);
    }
    return std::chrono::duration<double>(ran) / std::chrono::duration<double>(time);
  }
};

TEST_F(WatchdogOfTenants, a_stalled_queue_does_not_release_what_another_tenant_holds_on_another_device) {
  PartIn(milliseconds(3000), kLow);
  ASSERT_TRUE(Runs(kHeldByStalled)) << "its window is open for good";
  const double part = PartIn(milliseconds(10'000), kLow);
  EXPECT_LE(part, 0.051);
  EXPECT_GE(part, 0.049) << "it may wait for that, so the hold is not for good either";
}

TEST_F(WatchdogOfTenants, nor_do_many_stalled_queues_of_many_tenants_and_devices_together) {
  for (uint64_t i = 100; i < 120; ++i) {
    AddOf(i, i, 10, i);
    AddOf(i, 1000 + i, 0, i);
  }
  EXPECT_LE(PartIn(milliseconds(10'000), kLow), 0.051);
}

TEST_F(WatchdogOfTenants, where_one_of_its_job_has_work_the_stalled_queue_releases_it_at_once) {
  scheduler_.SetJob(ProcessId{kStalled}, JobId{5});
  scheduler_.SetJob(ProcessId{kAwaited}, JobId{5});
  AddOf(1, kAwaited, 0);
  EXPECT_GE(PartIn(milliseconds(200), kAwaited), 0.09);
  PartIn(milliseconds(3000), kLow);
  EXPECT_EQ(PartIn(milliseconds(1000), kAwaited), 1) << "until the queue retires something";
  RetireOne(kStalled);
  EXPECT_FALSE(Runs(kAwaited) || Runs(kLow));
}

TEST_F(WatchdogOfTenants, where_its_own_process_has_work_the_stalled_queue_releases_it_at_once) {
  AddOf(1, kAwaited, 0, kGpu, /*process=*/kStalled);
  PartIn(milliseconds(3000), kLow);
  EXPECT_EQ(PartIn(milliseconds(1000), kAwaited), 1);
  Finish(kAwaited);
  EXPECT_LE(PartIn(milliseconds(10'000), kLow), 0.06) << "it has no work there any more";
}

TEST_F(WatchdogOfTenants, a_job_does_not_wait_longer_because_others_are_stalled_as_well) {
  AddOf(3, kOther, 20, kElsewhere);
  PartIn(milliseconds(3000), kLow);
  scheduler_.SetJob(ProcessId{kStalled}, JobId{5});
  scheduler_.SetJob(ProcessId{kAwaited}, JobId{5});
  AddOf(1, kAwaited, 0);
  PartIn(milliseconds(1000), kLow);
  EXPECT_EQ(PartIn(milliseconds(1000), kAwaited), 1);
}

TEST_F(WatchdogOfTenants, where_only_its_own_tenant_would_lose_by_it_a_stalled_queue_releases_the_device) {
  constexpr uint64_t kOwnDevice = 9;
  constexpr uint64_t kWorks = 21;
  constexpr uint64_t kHeld = 22;
  AddOf(1, kWorks, 5, kOwnDevice);
  AddOf(1, kHeld, 0, kOwnDevice);
  AddOf(2, kOther, 0, kOwnDevice);
  PartIn(milliseconds(3000), kHeld, {kWorks});
  EXPECT_EQ(PartIn(milliseconds(1000), kHeld, {kWorks}), 1);
  AddOf(2, kMiddle, 5, kOwnDevice);
  EXPECT_LE(PartIn(milliseconds(1000), kHeld, {kWorks, kMiddle}), 0.06) << "kMiddle would lose as well";
}

}  // namespace
}  // namespace xsched::sched
