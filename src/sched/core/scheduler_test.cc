#include "sched/core/scheduler.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr QueueId kLow{1};
constexpr QueueId kHigh{2};
constexpr QueueId kOther{3};
constexpr DeviceId kDevice{7};

class SchedulerTest : public testing::Test {
 protected:
  void Add(QueueId id, Priority priority, DeviceId device = kDevice) {
    Hints hints;
    hints.priority = priority;
    ASSERT_TRUE(scheduler_.AddQueue(id, ProcessId{static_cast<uint64_t>(id)}, device, hints, now_));
    Decide();
  }
  void Progress(QueueId id, uint64_t submitted, uint64_t retired) {
    scheduler_.Progress(id, submitted, retired, now_);
    Decide();
  }
  void Decide() { ask_at_ = scheduler_.Decide(now_, sink_); }
  // Lets time pass. The scheduler decides whenever it has asked for it.
  void Pass(Duration time) {
    TimePoint end = now_ + time;
    for (int rounds = 0; ask_at_ <= end; ++rounds) {
      ASSERT_LT(rounds, 100000) << "the scheduler's timers do not come to rest";
      now_ = std::max(now_, ask_at_);
      Decide();
    }
    now_ = end;
  }
  bool Runs(QueueId id) const { return sink_.Of(id).run; }
  // Two queues share the device, and their clients report overruns. kLow has had its turn, and is held.
  void HoldOneThatReports(uint64_t commands, bool divided_by_device = false, bool of_one_process = false) {
    scheduler_.SetPolicy(*FindPolicyByName("UP"));
    Hints half;
    half.utilization = 50;
    for (const QueueId id : {kLow, kOther}) {
      const ProcessId process{of_one_process ? 1 : static_cast<uint64_t>(id)};
      ASSERT_TRUE(scheduler_.AddQueue(id, process, kDevice, half, now_,
                                      {.runs_beside_others = divided_by_device, .reports_overruns = true}));
      Progress(id, commands, 0);
    }
    while (!sink_.Of(kLow).run) Pass(milliseconds(1));
    while (sink_.Of(kLow).run) Pass(milliseconds(1));
  }
  void EndOverrun(QueueId id) {
    scheduler_.Drained(id, ++drains_, now_);
    Decide();
  }
  // Both do what they may do for a millisecond. Overruns are too short to count.
  void Work() {
    Pass(milliseconds(1));
    for (const QueueId id : {kLow, kOther}) {
      if (Runs(id)) Progress(id, 1'000'000, scheduler_.Stats(id, now_)->retired + 1);
    }
    for (const QueueId id : {kLow, kOther}) {
      if (!Runs(id)) EndOverrun(id);
    }
  }
  Duration ServiceOf(QueueId id) { return scheduler_.Stats(id, now_)->service; }
  // Request `number` of the urgent program (0, 1, …), and the pause after it.
  void ServeRequest(uint64_t number, Duration pause) {
    Progress(kHigh, number + 1, number);
    Pass(milliseconds(1));
    Progress(kHigh, number + 1, number + 1);
    Pass(pause);
  }

  Scheduler scheduler_{SchedulerConfig{}};
  Recorder sink_;
  TimePoint now_{milliseconds(1)};
  TimePoint ask_at_ = kNever;
  uint32_t drains_ = 0;
};

TEST_F(SchedulerTest, a_lower_queue_holds_while_a_higher_one_has_work) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  EXPECT_TRUE(Runs(kLow));
  Progress(kHigh, 1, 0);
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(Runs(kHigh));
}

TEST_F(SchedulerTest, it_goes_on_when_the_higher_one_has_been_idle_for_the_grace_period) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  Progress(kHigh, 1, 0);
  Progress(kHigh, 1, 1);
  EXPECT_FALSE(Runs(kLow)) << "the urgent program is likely to launch again";
  Pass(microseconds(199));
  EXPECT_FALSE(Runs(kLow));
  Pass(microseconds(2));
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(SchedulerTest, work_within_the_grace_period_keeps_the_others_held) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  for (uint64_t i = 0; i < 50; ++i) {
    Progress(kHigh, i + 1, i);
    Pass(microseconds(100));
    Progress(kHigh, i + 1, i + 1);
    Pass(microseconds(100));
    ASSERT_FALSE(Runs(kLow));
  }
  EXPECT_EQ(scheduler_.Stats(kLow, now_)->holds, 1u);
}

TEST_F(SchedulerTest, a_program_that_only_makes_long_pauses_keeps_nobody_waiting_in_them) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  for (uint64_t i = 0; i < 4; ++i) ServeRequest(i, milliseconds(20));
  ServeRequest(4, microseconds(0));
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(SchedulerTest, a_program_that_makes_small_gaps_as_well_keeps_its_grace_period) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  for (uint64_t i = 0; i < 20; ++i) ServeRequest(i, i % 4 == 0 ? microseconds(100) : milliseconds(20));
  ServeRequest(20, microseconds(0));
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, a_program_that_begins_to_make_small_gaps_gets_its_grace_period_back) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  for (uint64_t i = 0; i < 8; ++i) ServeRequest(i, milliseconds(20));
  ServeRequest(8, microseconds(100));
  EXPECT_TRUE(Runs(kLow));
  ServeRequest(9, microseconds(0));
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, a_small_gap_now_and_then_makes_others_run_in_it_ever_less_often) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  int ran = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    ServeRequest(i, i % 20 == 0 ? microseconds(100) : milliseconds(20));
    if (i % 20 != 0) continue;
    ran += Runs(kLow);
  }
  // After 4 and after 16 long pauses. There are never 64 in a row.
  EXPECT_EQ(ran, 2);
}

// Notes when the first queue that it is shown has finished.
class NotesEnds final : public Policy {
 public:
  explicit constexpr NotesEnds(TimePoint& noted) : Policy(kInfo), noted_(noted) {}
  TimePoint Decide(const DeviceView& device) const override {
    for (QueueView& queue : device.ready) queue.run = true;
    noted_ = device.ready.front().finished_at;
    return kNever;
  }
  bool CanHold(const Hints&, const Hints&) const override { return false; }

 private:
  static constexpr PolicyInfo kInfo = {
      .type = kPolicyUnknown, .name = "ENDS", .summary = "", .hints = {.latency_target = true}};
  TimePoint& noted_;
};

TEST_F(SchedulerTest, a_policy_sees_when_a_request_has_ended_unless_the_queue_was_absent) {
  for (const Granularity by : {Granularity::kQueue, Granularity::kProcess}) {
    TimePoint seen{};
    const NotesEnds policy(seen);
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy({policy, by});
    ASSERT_TRUE(scheduler.AddQueue(kLow, ProcessId{1}, kDevice, {}, now_));
    auto progress = [&](uint64_t submitted, uint64_t retired) {
      now_ += milliseconds(1);
      scheduler.Decide(now_, sink_);  // it has been idle for longer than the grace period
      scheduler.Progress(kLow, submitted, retired, now_);
      scheduler.Decide(now_, sink_);
      return now_;
    };
    progress(1, 0);
    const TimePoint first_end = progress(1, 1);
    progress(2, 1);
    EXPECT_EQ(seen, first_end);

    scheduler.SetAbsent(kLow, true, now_);
    scheduler.SetAbsent(kLow, false, now_ + microseconds(100));
    progress(2, 2);
    progress(3, 2);
    EXPECT_EQ(seen, first_end);

    const TimePoint third_end = progress(3, 3);
    progress(4, 3);
    EXPECT_EQ(seen, third_end);

    progress(6, 3);
    const TimePoint fourth_end = progress(6, 4);
    EXPECT_EQ(seen, fourth_end) << "more work had come before";
  }
}

TEST_F(SchedulerTest, queues_that_nobody_can_hold_are_neither_gated_nor_tracked) {
  Add(kLow, 0);
  Add(kOther, 0);
  Progress(kLow, 1, 0);
  Progress(kOther, 1, 0);
  EXPECT_TRUE(sink_.changes.empty());
}

TEST_F(SchedulerTest, queues_of_several_tenants_are_tracked_so_that_the_time_of_each_is_counted) {
  Add(kLow, 0);
  Add(kOther, 0);
  scheduler_.SetTenant(ProcessId{static_cast<uint64_t>(kOther)}, TenantId{7});
  Decide();
  EXPECT_TRUE(sink_.Of(kLow).tracked);
  EXPECT_TRUE(sink_.Of(kOther).tracked);
  EXPECT_FALSE(sink_.Of(kLow).gated);
  scheduler_.RemoveQueue(kOther, now_);
  Decide();
  EXPECT_FALSE(sink_.Of(kLow).tracked);
}

TEST_F(SchedulerTest, a_queue_with_a_limit_is_gated_also_if_there_is_no_other) {
  scheduler_.SetPolicy(*FindPolicy(kPolicyReservation));
  Add(kLow, 0);
  Decide();
  EXPECT_FALSE(sink_.Of(kLow).gated);
  Hints hints;
  hints.limit_us = 20'000;
  hints.period_us = 100'000;
  scheduler_.SetHints(kLow, hints);
  Decide();
  EXPECT_TRUE(sink_.Of(kLow).gated);
  Progress(kLow, 1000, 0);
  Decide();
  now_ += milliseconds(21);
  Decide();
  EXPECT_FALSE(sink_.Of(kLow).run) << "it has used up its limit";
}

TEST_F(SchedulerTest, a_rival_makes_the_lower_queue_gated_and_both_tracked_until_it_leaves) {
  Add(kLow, 0);
  Add(kHigh, 1);
  EXPECT_TRUE(sink_.Of(kLow).gated);
  EXPECT_TRUE(sink_.Of(kLow).tracked);
  EXPECT_FALSE(sink_.Of(kHigh).gated);
  EXPECT_TRUE(sink_.Of(kHigh).tracked);
  scheduler_.RemoveQueue(kHigh, now_);
  scheduler_.RemoveProcess(ProcessId{static_cast<uint64_t>(kHigh)});
  Decide();
  EXPECT_FALSE(sink_.Of(kLow).gated);
  EXPECT_FALSE(sink_.Of(kLow).tracked);
}

TEST_F(SchedulerTest, a_device_that_is_gone_makes_nobody_wait_for_its_queues) {
  Add(kLow, 0, DeviceId{1});
  Add(kHigh, 1, DeviceId{1});
  Add(kOther, 0, DeviceId{2});
  for (QueueId id : {kLow, kHigh, kOther}) Progress(id, 9, 0);
  Pass(milliseconds(30));
  ASSERT_FALSE(Runs(kLow)) << "it is held for long";
  for (QueueId id : {kOther, kLow, kHigh}) {
    scheduler_.RemoveQueue(id, now_);
    scheduler_.RemoveProcess(ProcessId{static_cast<uint64_t>(id)});
    Pass(milliseconds(1));
  }
  constexpr QueueId kLater{99};
  Add(kLater, 0, DeviceId{3});
  Progress(kLater, 9, 0);
  EXPECT_FALSE(sink_.Of(kLater).tracked);
}

TEST_F(SchedulerTest, devices_do_not_disturb_each_other) {
  Add(kLow, 0, DeviceId{1});
  Add(kHigh, 9, DeviceId{2});
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, 0);
  EXPECT_TRUE(Runs(kLow));
  EXPECT_FALSE(sink_.Of(kLow).gated);
}

TEST_F(SchedulerTest, an_absent_queue_makes_nobody_wait) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, 0);
  scheduler_.SetAbsent(kHigh, true, now_);
  Decide();
  EXPECT_TRUE(Runs(kLow));
  scheduler_.SetAbsent(kHigh, false, now_);
  Decide();
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, a_queue_that_retires_nothing_loses_its_claim_after_80_ms_and_regains_it_by_progress) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 2, 0);
  Pass(milliseconds(79));
  EXPECT_FALSE(Runs(kLow));
  Pass(milliseconds(2));
  EXPECT_TRUE(Runs(kLow));
  EXPECT_EQ(scheduler_.Stats(kHigh, now_)->incidents, 1u);
  EXPECT_TRUE(scheduler_.Stats(kHigh, now_)->stalled);
  Progress(kHigh, 2, 1);
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, nobody_is_stalled_while_nobody_waits) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kHigh, 1, 0);
  Pass(std::chrono::seconds(5));
  EXPECT_EQ(scheduler_.Stats(kHigh, now_)->incidents, 0u);
}

TEST_F(SchedulerTest, progress_is_queried_only_while_others_wait_and_less_and_less_often) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kHigh, 1, 0);
  Pass(milliseconds(10));
  EXPECT_EQ(sink_.queries[kHigh], 0);
  Progress(kLow, 1, 0);
  Pass(milliseconds(20));
  EXPECT_GE(sink_.queries[kHigh], 5);
  EXPECT_LE(sink_.queries[kHigh], 20);
  EXPECT_EQ(sink_.queries[kLow], 0);
}

TEST_F(SchedulerTest, a_held_queue_that_the_running_one_waits_for_runs_until_that_has_passed) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  Progress(kHigh, 1, 0);
  ASSERT_FALSE(Runs(kLow));
  Dependency dependency{kLow, 3};
  scheduler_.SetDependencies(kHigh, {&dependency, 1});
  Decide();
  EXPECT_TRUE(Runs(kLow));
  Progress(kLow, 5, 2);
  EXPECT_TRUE(Runs(kLow));
  Progress(kLow, 5, 3);
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, dependencies_reach_through_others_and_cycles_come_to_rest) {
  Add(kLow, 0);
  Add(kHigh, 2);
  Add(kOther, 1);
  for (QueueId id : {kLow, kHigh, kOther}) Progress(id, 9, 0);
  Dependency on_other{kOther, 9};
  Dependency on_low{kLow, 9};
  Dependency on_high{kHigh, 9};
  scheduler_.SetDependencies(kHigh, {&on_other, 1});
  scheduler_.SetDependencies(kOther, {&on_low, 1});
  scheduler_.SetDependencies(kLow, {&on_high, 1});
  Decide();
  EXPECT_TRUE(Runs(kLow) && Runs(kOther) && Runs(kHigh));
}

// ---- waits between devices ----

constexpr DeviceId kHere{1};
constexpr DeviceId kElsewhere{2};

class WaitsAcrossDevices : public SchedulerTest, public testing::WithParamInterface<bool> {
 protected:
  // A low and a middle queue compete on one device. The high one is alone on another device, which the
  // scheduler knows first or last.
  void SetUp() override {
    if (GetParam()) Add(kHigh, 10, kElsewhere);
    Add(kLow, 0, kHere);
    Add(kMiddle, 5, kHere);
    if (!GetParam()) Add(kHigh, 10, kElsewhere);
    Progress(kLow, 5, 0);
    Progress(kMiddle, 1, 0);
    ASSERT_FALSE(Runs(kLow));
  }
  void HighWaitsForLow(uint64_t until) {
    Dependency dependency{kLow, until};
    scheduler_.SetDependencies(kHigh, {&dependency, 1});
    Decide();
  }

  static constexpr QueueId kMiddle = kOther;
};

TEST_P(WaitsAcrossDevices, what_an_urgent_queue_waits_for_is_as_urgent_on_its_own_device) {
  Progress(kHigh, 1, 0);
  HighWaitsForLow(3);
  EXPECT_TRUE(Runs(kLow));
  EXPECT_FALSE(Runs(kMiddle));
  EXPECT_TRUE(sink_.Of(kMiddle).gated) << "nobody is held without a gate";
  EXPECT_TRUE(sink_.Of(kLow).tracked && sink_.Of(kHigh).tracked);
  Progress(kLow, 5, 2);
  EXPECT_FALSE(Runs(kMiddle));
  Progress(kLow, 5, 3);
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(Runs(kMiddle));
  EXPECT_FALSE(sink_.Of(kMiddle).gated);
  EXPECT_EQ(sink_.Of(kHigh), Control{});
}

TEST_P(WaitsAcrossDevices, a_wait_counts_from_when_the_waiter_has_work) {
  HighWaitsForLow(3);
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(sink_.Of(kHigh).tracked) << "it must tell when it has work";
  Progress(kHigh, 1, 0);
  EXPECT_TRUE(Runs(kLow));
}

TEST_P(WaitsAcrossDevices, a_waiter_that_leaves_takes_its_urgency_with_it) {
  Progress(kHigh, 1, 0);
  HighWaitsForLow(3);
  ASSERT_TRUE(Runs(kLow));
  scheduler_.RemoveQueue(kHigh, now_);
  Decide();
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(Runs(kMiddle));
}

TEST_P(WaitsAcrossDevices, a_waiter_that_is_suspended_lends_nothing) {
  Progress(kHigh, 1, 0);
  HighWaitsForLow(3);
  scheduler_.SetAbsent(kHigh, true, now_);
  Decide();
  EXPECT_FALSE(Runs(kLow));
}

TEST_P(WaitsAcrossDevices, a_waiter_that_counts_as_stalled_because_it_waits_lends_its_urgency_still) {
  constexpr QueueId kRival{9};
  Add(kRival, 0, kElsewhere);
  Progress(kRival, 1, 0);
  Progress(kHigh, 1, 0);
  HighWaitsForLow(3);
  ASSERT_FALSE(Runs(kRival));
  for (int i = 0; i < 85; ++i) {
    Pass(milliseconds(1));
    Progress(kLow, 5 + static_cast<uint64_t>(i), 2);
  }
  ASSERT_TRUE(Runs(kRival)) << "whoever waits elsewhere does not use the device";
  EXPECT_TRUE(Runs(kLow));
}

INSTANTIATE_TEST_SUITE_P(DeviceOrder, WaitsAcrossDevices, testing::Bool());

TEST_F(SchedulerTest, waits_that_repeat_themselves_cost_no_decision) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 5, 0);
  Progress(kHigh, 1, 0);
  Dependency dependency{kLow, 3};
  scheduler_.SetDependencies(kHigh, {&dependency, 1});
  Decide();
  TimePoint ask_at = ask_at_;
  now_ += microseconds(1);
  scheduler_.SetDependencies(kHigh, {&dependency, 1});
  Dependency passed{kLow, 0};
  scheduler_.SetDependencies(kOther, {&passed, 1});
  Decide();
  EXPECT_EQ(ask_at_, ask_at);
}

// ---- queries and stalls ----

TEST_F(SchedulerTest, a_queue_that_nobody_asked_is_asked_before_it_is_called_stalled) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kHigh, 1000, 0);
  Pass(std::chrono::seconds(5));
  Progress(kLow, 1, 0);
  Pass(microseconds(10));
  EXPECT_EQ(scheduler_.Stats(kHigh, now_)->incidents, 0u);
  EXPECT_EQ(sink_.queries[kHigh], 1);
  EXPECT_FALSE(Runs(kLow));
  Progress(kHigh, 1000, 500);
  Pass(milliseconds(79));
  EXPECT_FALSE(Runs(kLow));
  Pass(milliseconds(2));
  EXPECT_TRUE(Runs(kLow)) << "the time in which nobody asked says nothing about how long its commands take";
}

TEST_F(SchedulerTest, the_time_in_which_a_queue_was_held_counts_for_nothing) {
  constexpr QueueId kHighest = kOther;
  Add(kLow, 0);
  Add(kHigh, 1);
  Add(kHighest, 2);
  Progress(kLow, 1, 0);
  Progress(kHigh, 9, 1);
  Pass(milliseconds(10));
  for (uint64_t i = 1; i <= 100; ++i) {
    Progress(kHighest, i + 1, i);
    Pass(milliseconds(10));
  }
  ASSERT_FALSE(Runs(kHigh));
  Progress(kHighest, 101, 101);
  Pass(milliseconds(1));
  ASSERT_TRUE(Runs(kHigh));
  Pass(milliseconds(68));
  EXPECT_FALSE(scheduler_.Stats(kHigh, now_)->stalled);
  Pass(milliseconds(3));
  EXPECT_TRUE(scheduler_.Stats(kHigh, now_)->stalled) << "it ran for 10 ms before and 70 ms after";
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(SchedulerTest, a_stalled_queue_is_asked_still_but_seldom_and_regains_its_claim_by_the_answer) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1000, 0);
  Pass(milliseconds(100));
  ASSERT_TRUE(scheduler_.Stats(kHigh, now_)->stalled);
  int before = sink_.queries[kHigh];
  Pass(std::chrono::seconds(1));
  EXPECT_GE(sink_.queries[kHigh] - before, 5);
  EXPECT_LE(sink_.queries[kHigh] - before, 50);
  Progress(kHigh, 1000, 1);
  EXPECT_FALSE(scheduler_.Stats(kHigh, now_)->stalled);
  EXPECT_FALSE(Runs(kLow));
}

TEST_F(SchedulerTest, a_stalled_queue_that_was_suspended_and_goes_on_has_its_claim_again) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 2, 0);
  Pass(milliseconds(100));
  ASSERT_TRUE(scheduler_.Stats(kHigh, now_)->stalled);
  scheduler_.SetAbsent(kHigh, true, now_);
  Pass(std::chrono::seconds(10));
  scheduler_.SetAbsent(kHigh, false, now_);
  Decide();
  EXPECT_FALSE(Runs(kLow));
  Pass(milliseconds(79));
  EXPECT_FALSE(Runs(kLow));
  Pass(milliseconds(2));
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(SchedulerTest, a_held_queue_that_is_done_and_has_not_said_so_holds_nobody_for_long_afterwards) {
  constexpr QueueId kLowest = kOther;
  Add(kLow, 0);
  Add(kHigh, 1);
  Add(kLowest, -1);
  Progress(kLowest, 1, 0);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, 0);
  ASSERT_FALSE(Runs(kLow));
  Progress(kHigh, 1, 1);
  Pass(microseconds(300));
  ASSERT_TRUE(Runs(kLow) && !Runs(kLowest));
  EXPECT_EQ(sink_.queries[kLow], 0);
  Pass(microseconds(200));
  EXPECT_EQ(sink_.queries[kLow], 1);
  Progress(kLow, 1, 1);
  Pass(microseconds(300));
  EXPECT_TRUE(Runs(kLowest));
}

TEST_F(SchedulerTest, counters_that_lie_do_no_harm) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, UINT64_MAX);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(kLow));
  Progress(kHigh, UINT64_MAX, 0);
  EXPECT_FALSE(Runs(kLow));
  Progress(kHigh, 0, 0);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(kLow));
}

TEST_F(SchedulerTest, hints_survive_a_change_of_policy) {
  Add(kLow, 0);
  Add(kHigh, 42);
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Decide();
  scheduler_.SetPolicy(*FindPolicy(kPolicyHighestPriorityFirst));
  Decide();
  EXPECT_EQ(scheduler_.GetHints(kHigh)->priority, 42);
}

TEST_F(SchedulerTest, changed_hints_take_effect_at_once) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, 0);
  Hints hints;
  hints.priority = 5;
  scheduler_.SetHints(kLow, hints);
  Decide();
  EXPECT_TRUE(Runs(kLow));
  EXPECT_FALSE(Runs(kHigh));
}

TEST_F(SchedulerTest, a_changed_utilization_counts_from_now_on) {
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Add(kLow, 0);
  Add(kOther, 0);
  Progress(kLow, 1'000'000, 0);
  Progress(kOther, 1'000'000, 0);
  uint64_t done = 0;
  auto work = [&](int ms) {
    for (int i = 0; i < ms; ++i) {
      Pass(milliseconds(1));
      ++done;
      Progress(kLow, 1'000'000, done);
      Progress(kOther, 1'000'000, done);
    }
  };
  work(2000);
  Hints hints;
  hints.utilization = 1;
  scheduler_.SetHints(kLow, hints);
  hints.utilization = 2;
  scheduler_.SetHints(kOther, hints);
  auto before = scheduler_.Stats(kLow, now_)->service;
  work(300);
  double share =
      static_cast<double>((scheduler_.Stats(kLow, now_)->service - before) / milliseconds(1)) / 300;
  EXPECT_NEAR(share, 1.0 / 3, 0.05);
  hints.utilization = 100;
  scheduler_.SetHints(kOther, hints);
  work(1000);
  hints.utilization = 1;
  scheduler_.SetHints(kOther, hints);
  before = scheduler_.Stats(kOther, now_)->service;
  work(300);
  share = static_cast<double>((scheduler_.Stats(kOther, now_)->service - before) / milliseconds(1)) / 300;
  EXPECT_NEAR(share, 0.5, 0.05) << "what it had as a larger partner is no debt";
}

TEST_F(SchedulerTest, device_time_and_waiting_time_are_accounted) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 9, 0);
  Pass(milliseconds(10));
  Progress(kHigh, 1, 0);
  Pass(milliseconds(5));
  auto low = scheduler_.Stats(kLow, now_);
  auto high = scheduler_.Stats(kHigh, now_);
  EXPECT_EQ(low->service, milliseconds(10));
  EXPECT_EQ(low->waiting, milliseconds(5));
  EXPECT_EQ(high->service, milliseconds(5));
}

TEST_F(SchedulerTest, what_a_held_queue_still_does_is_charged_to_it_and_the_next_begins_when_that_has_ended) {
  HoldOneThatReports(1'000'000);
  EXPECT_TRUE(sink_.Of(kLow).charges_overruns);
  EXPECT_FALSE(Runs(kOther));
  EXPECT_EQ(scheduler_.Stats(kOther, now_)->waits_for, kLow);
  EXPECT_EQ(scheduler_.Stats(kLow, now_)->waits_for, kOther);
  const Duration low = ServiceOf(kLow);
  const Duration other = ServiceOf(kOther);
  const Duration waited = scheduler_.Stats(kLow, now_)->waiting;
  Pass(milliseconds(2));
  Progress(kLow, 1'000'000, 1);
  Pass(milliseconds(2));
  EXPECT_FALSE(Runs(kOther));
  EndOverrun(kLow);
  EXPECT_TRUE(Runs(kOther));
  EXPECT_EQ(ServiceOf(kLow) - low, milliseconds(4));
  EXPECT_EQ(ServiceOf(kOther) - other, milliseconds(0));
  Pass(milliseconds(2));
  EndOverrun(kLow);
  EXPECT_EQ(ServiceOf(kLow) - low, milliseconds(4)) << "that is known";
  EXPECT_EQ(ServiceOf(kOther) - other, milliseconds(2));
  EXPECT_EQ(scheduler_.Stats(kLow, now_)->waiting - waited, milliseconds(2));
}

// The device may wait for something that the other queue does.
TEST_F(SchedulerTest, an_overrun_that_does_not_end_is_waited_for_20_ms_and_not_again_within_a_second) {
  HoldOneThatReports(1'000'000);
  Pass(milliseconds(20) - microseconds(1));
  EXPECT_FALSE(Runs(kOther));
  Pass(microseconds(1));
  EXPECT_TRUE(Runs(kOther));
  EndOverrun(kLow);
  const auto is_awaited_again = [&] {
    while (!Runs(kLow)) Work();
    while (Runs(kLow)) Pass(milliseconds(1));
    return !Runs(kOther);
  };
  while (now_ < TimePoint(milliseconds(900))) {
    ASSERT_FALSE(is_awaited_again());
    Work();
  }
  bool awaited = false;
  while (now_ < TimePoint(milliseconds(1100))) {
    awaited = is_awaited_again();
    Work();
  }
  EXPECT_TRUE(awaited);
}

TEST_F(SchedulerTest, overruns_that_are_usually_short_are_not_waited_for) {
  HoldOneThatReports(1'000'000);
  EXPECT_FALSE(Runs(kOther)) << "how long they are is not known";
  Pass(microseconds(100));
  EndOverrun(kLow);
  while (!Runs(kLow)) Work();
  while (Runs(kLow)) Pass(milliseconds(1));
  EXPECT_TRUE(Runs(kOther));
}

// Such a device gives each an equal part of the time.
TEST_F(SchedulerTest, nobody_waits_for_overruns_of_other_processes_where_the_device_divides_its_time) {
  HoldOneThatReports(1'000'000, true);
  EXPECT_TRUE(Runs(kOther));
  const Duration low = ServiceOf(kLow);
  const Duration other = ServiceOf(kOther);
  Pass(milliseconds(4));
  EXPECT_EQ(ServiceOf(kLow) - low, milliseconds(2));
  EXPECT_EQ(ServiceOf(kOther) - other, milliseconds(2));
}

TEST_F(SchedulerTest, queues_of_one_process_wait_for_overruns_of_each_other_on_any_device) {
  HoldOneThatReports(1'000'000, true, true);
  EXPECT_FALSE(Runs(kOther));
  EndOverrun(kLow);
  EXPECT_TRUE(Runs(kOther));
}

TEST_F(SchedulerTest, an_overrun_of_a_queue_that_waits_for_the_next_one_is_not_waited_for) {
  HoldOneThatReports(1'000'000);
  Pass(milliseconds(1));
  EndOverrun(kLow);
  while (!Runs(kLow)) Work();
  const Dependency on_other{kOther, 1'000'000};
  scheduler_.SetDependencies(kLow, {&on_other, 1});
  while (Runs(kLow)) Pass(milliseconds(1));
  EXPECT_TRUE(Runs(kOther));
}

TEST_F(SchedulerTest, one_that_has_just_become_ready_begins_although_another_overruns) {
  scheduler_.SetPolicy(*FindPolicyByName("KEDF"));
  Hints soon;
  soon.deadline_us = 1000;
  for (const QueueId id : {kLow, kHigh}) {
    ASSERT_TRUE(scheduler_.AddQueue(id, ProcessId{static_cast<uint64_t>(id)}, kDevice,
                                    id == kHigh ? soon : Hints{}, now_, {.reports_overruns = true}));
  }
  Progress(kLow, 1'000'000, 0);
  Pass(milliseconds(5));
  Progress(kHigh, 1, 0);
  EXPECT_FALSE(Runs(kLow));
  EXPECT_TRUE(Runs(kHigh));
}

// Its first answer may have missed a command, and then its client has nothing to report by itself.
TEST_F(SchedulerTest, a_held_queue_whose_client_does_not_report_the_end_is_asked_again_but_seldom) {
  HoldOneThatReports(1'000'000);
  int asked = sink_.queries[kLow];
  int again = 0;
  for (int i = 0; i < 1000 && again < 2; ++i) {
    Progress(kOther, 1'000'000, static_cast<uint64_t>(i) + 1);  // it is at work
    Pass(milliseconds(1));
    ASSERT_FALSE(Runs(kLow));
    again += sink_.queries[kLow] != std::exchange(asked, sink_.queries[kLow]);
    if (i < 90) {
      EXPECT_EQ(again, 0) << "most overruns are over by then";
    }
  }
  EXPECT_EQ(again, 2);
}

TEST_F(SchedulerTest, a_held_queue_whose_work_has_ended_is_charged_no_longer) {
  HoldOneThatReports(2);
  const Duration before = scheduler_.Stats(kLow, now_)->service;
  Progress(kLow, 2, 2);
  Pass(milliseconds(3));
  EXPECT_EQ(scheduler_.Stats(kLow, now_)->service, before);
}

TEST_F(SchedulerTest, what_a_held_queue_still_does_is_not_charged_if_its_client_does_not_report_the_end) {
  scheduler_.SetPolicy(*FindPolicyByName("UP"));
  for (const QueueId id : {kLow, kOther}) {
    ASSERT_TRUE(scheduler_.AddQueue(id, ProcessId{static_cast<uint64_t>(id)}, kDevice, {}, now_));
    Progress(id, 1'000'000, 0);
  }
  while (sink_.Of(kLow).run) Pass(milliseconds(1));
  EXPECT_TRUE(Runs(kOther));
  EXPECT_FALSE(sink_.Of(kLow).charges_overruns);
  const Duration low = ServiceOf(kLow);
  const Duration other = ServiceOf(kOther);
  Pass(milliseconds(2));
  EXPECT_EQ(ServiceOf(kLow), low);
  EXPECT_EQ(ServiceOf(kOther) - other, milliseconds(2));
}

// The rest of it waits for commands of the other queue, which has begun.
TEST_F(SchedulerTest, an_overrun_that_is_usually_short_is_charged_for_half_a_millisecond_at_most) {
  HoldOneThatReports(1'000'000);
  Pass(microseconds(100));
  EndOverrun(kLow);
  while (!Runs(kLow)) Work();
  while (Runs(kLow)) Pass(milliseconds(1));
  ASSERT_TRUE(Runs(kOther));
  const Duration low = ServiceOf(kLow);
  const Duration other = ServiceOf(kOther);
  Pass(microseconds(500));
  Pass(milliseconds(2));
  EXPECT_EQ(ServiceOf(kLow) - low, microseconds(250)) << "half of that time";
  EXPECT_EQ(ServiceOf(kOther) - other, microseconds(2250));
}

// Lets the last queue run that it is shown, and counts how often it is asked.
class CountsDecisions final : public Policy {
 public:
  explicit constexpr CountsDecisions(int& decisions) : Policy(kInfo), decisions_(decisions) {}
  TimePoint Decide(const DeviceView& device) const override {
    for (QueueView& queue : device.ready) queue.run = &queue == &device.ready.back();
    ++decisions_;
    return kNever;
  }
  bool CanHold(const Hints&, const Hints&) const override { return true; }

 private:
  static constexpr PolicyInfo kInfo = {
      .type = kPolicyUnknown, .name = "LAST", .summary = "", .charges_overruns = true, .steady = true};
  int& decisions_;
};

TEST_F(SchedulerTest, the_end_of_an_overrun_for_which_nobody_waits_needs_no_decision) {
  int decisions = 0;
  const CountsDecisions policy(decisions);
  scheduler_.SetPolicy(policy);
  for (const QueueId id : {kLow, kHigh}) {
    const ProcessId process{static_cast<uint64_t>(id)};
    ASSERT_TRUE(scheduler_.AddQueue(id, process, kDevice, {}, now_, {.reports_overruns = true}));
  }
  uint64_t requests = 0;
  const auto begin_request = [&] {
    ++requests;
    Progress(kHigh, requests, requests - 1);
    ASSERT_TRUE(Runs(kHigh));
    ASSERT_FALSE(Runs(kLow));
    decisions = 0;
  };
  Progress(kLow, 1'000'000, 0);
  begin_request();
  Pass(microseconds(100));
  const Duration low = ServiceOf(kLow);
  const Duration high = ServiceOf(kHigh);
  EndOverrun(kLow);
  EXPECT_EQ(decisions, 0);
  Pass(milliseconds(1));
  EXPECT_EQ(ServiceOf(kLow), low);
  EXPECT_EQ(ServiceOf(kHigh) - high, milliseconds(1));
  Progress(kHigh, requests, requests);
  Pass(milliseconds(10));

  const Duration before = ServiceOf(kLow);
  begin_request();
  Pass(milliseconds(1));
  EXPECT_EQ(decisions, 0) << "nor is there one when it is charged no longer";
  EXPECT_EQ(ServiceOf(kLow) - before, microseconds(250)) << "half of half a millisecond";
}

TEST_F(SchedulerTest, an_overrun_whose_end_is_never_reported_is_charged_for_10_s_at_most) {
  HoldOneThatReports(1'000'000);
  const Duration before = ServiceOf(kLow);
  for (int i = 0; i < 30; ++i) {
    Progress(kOther, 1'000'000, static_cast<uint64_t>(i) + 1);
    Pass(std::chrono::seconds(1));
    if (Runs(kLow)) return;  // the debt is paid
  }
  EXPECT_LE(ServiceOf(kLow) - before, std::chrono::seconds(6));
}

TEST_F(SchedulerTest, an_overrun_that_has_not_ended_when_its_queue_runs_again_was_a_long_one) {
  HoldOneThatReports(1'000'000);
  Pass(microseconds(100));
  EndOverrun(kLow);
  const auto is_awaited_again = [&] {
    while (!Runs(kLow)) Work();
    while (Runs(kLow)) Pass(milliseconds(1));
    return !Runs(kOther);
  };
  ASSERT_FALSE(is_awaited_again());
  EXPECT_TRUE(is_awaited_again());
}

TEST_F(SchedulerTest, a_change_is_reported_once) {
  Add(kLow, 0);
  Add(kHigh, 1);
  Progress(kLow, 1, 0);
  Progress(kHigh, 1, 0);
  sink_.changes.clear();
  for (int i = 0; i < 10; ++i) Decide();
  EXPECT_TRUE(sink_.changes.empty());
}

TEST_F(SchedulerTest, unknown_queues_are_ignored) {
  scheduler_.Progress(QueueId{99}, 1, 0, now_);
  scheduler_.RemoveQueue(QueueId{99}, now_);
  scheduler_.SetAbsent(QueueId{99}, true, now_);
  EXPECT_FALSE(scheduler_.Stats(QueueId{99}, now_).has_value());
  Decide();
  EXPECT_EQ(ask_at_, kNever);
}

// Random events on two devices under every policy. Whatever happens: a device with work always has a queue
// that may run, only gated queues are held, the timers come to rest, and the same events give the same
// controls.
class RandomEvents : public testing::TestWithParam<std::tuple<XPolicyType, int>> {};

TEST_P(RandomEvents, keep_the_invariants) {
  const XPolicyType policy = std::get<0>(GetParam());
  const int seed = std::get<1>(GetParam());
  std::mt19937 random(static_cast<unsigned>(seed));
  auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Scheduler one{SchedulerConfig{}};
  Scheduler two{SchedulerConfig{}};
  Recorder sink_one;
  Recorder sink_two;
  constexpr int kQueues = 8;
  uint64_t submitted[kQueues] = {};
  uint64_t retired[kQueues] = {};
  bool absent[kQueues] = {};
  constexpr int kDevices = 2;
  auto device_of = [](int queue) { return queue % kDevices; };
  TimePoint now{milliseconds(1)};
  auto both = [&](auto&& call) {
    call(one);
    call(two);
  };
  both([&](Scheduler& scheduler) { scheduler.SetPolicy(*FindPolicy(policy)); });
  for (int i = 0; i < kQueues; ++i) {
    Hints hints;
    hints.priority = below(3);
    hints.utilization = below(4) * 25;
    hints.weight = 1 + below(400);
    both([&](Scheduler& scheduler) {
      scheduler.AddQueue(QueueId{static_cast<uint64_t>(i) + 1}, ProcessId{1},
                         DeviceId{static_cast<uint64_t>(device_of(i))}, hints, now);
    });
  }
  for (int step = 0; step < 5000; ++step) {
    int i = below(kQueues);
    QueueId id{static_cast<uint64_t>(i) + 1};
    now += microseconds(below(400));
    switch (below(5)) {
      case 0:
        ++submitted[i];
        break;
      case 1:
        retired[i] = std::min(submitted[i], retired[i] + 1);
        break;
      case 2:
        retired[i] = submitted[i];
        break;
      case 3:
        absent[i] = below(4) == 0;
        both([&](Scheduler& scheduler) { scheduler.SetAbsent(id, absent[i], now); });
        break;
      default: {
        Dependency dependency{QueueId{static_cast<uint64_t>(below(kQueues)) + 1},
                              static_cast<uint64_t>(below(50))};
        size_t count = static_cast<size_t>(below(2));
        both([&](Scheduler& scheduler) { scheduler.SetDependencies(id, {&dependency, count}); });
      }
    }
    both([&](Scheduler& scheduler) { scheduler.Progress(id, submitted[i], retired[i], now); });
    TimePoint ask_one = one.Decide(now, sink_one);
    TimePoint ask_two = two.Decide(now, sink_two);
    ASSERT_EQ(ask_one, ask_two);
    int ready[kDevices] = {};
    int running[kDevices] = {};
    for (int q = 0; q < kQueues; ++q) {
      QueueId queue{static_cast<uint64_t>(q) + 1};
      ASSERT_EQ(sink_one.Of(queue), sink_two.Of(queue));
      ASSERT_TRUE(sink_one.Of(queue).run || sink_one.Of(queue).gated);
      auto stats = one.Stats(queue, now);
      two.Stats(queue, now);  // reading statistics divides the accounted time, so both are read
      if (stats->state != QueueState::kReady || stats->stalled || absent[q]) continue;
      ++ready[device_of(q)];
      running[device_of(q)] += stats->control.run;
    }
    // A lingering queue may keep the ready ones waiting, but only until the grace period is over.
    Duration bound = std::max<Duration>(microseconds(200), one.timeslice() * kQueues);
    for (int device = 0; device < kDevices; ++device) {
      ASSERT_TRUE(ready[device] == 0 || running[device] > 0 || ask_one <= now + bound);
    }
  }
}

std::vector<XPolicyType> PolicyTypes() {
  std::vector<XPolicyType> types;
  for (PolicyGetter policy : Policies()) types.push_back(policy().type());
  return types;
}

INSTANTIATE_TEST_SUITE_P(Policies, RandomEvents,
                         testing::Combine(testing::ValuesIn(PolicyTypes()), testing::Range(1, 6)));

}  // namespace
}  // namespace xsched::sched
