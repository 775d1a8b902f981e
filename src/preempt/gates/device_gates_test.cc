#include "preempt/gates/device_gates.h"

#include <gmock/gmock.h>

#include "preempt/gates/testing/flow_test.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using Item = FakeHwQueue::Item;

class DeviceGatesTest : public FlowTest {
 protected:
  DeviceGatesTest() : FlowTest(kGatingDeviceGates) { Begin(); }
  size_t gates() const { return driver.Count(Item::kGate); }
  size_t reports() const { return driver.Count(Item::kReport); }
};

TEST_F(DeviceGatesTest, a_held_queue_gets_a_gate_in_front_of_its_next_command) {
  Launch(2);
  EXPECT_EQ(gates(), 0u);
  Hold();
  Launch(1);
  ASSERT_EQ(gates(), 1u);
  EXPECT_EQ(driver.items[2].kind, Item::kGate);
  EXPECT_EQ(driver.items[2].value, 2u) << "it reports what is in front of it";
}

TEST_F(DeviceGatesTest, a_gate_reads_gate_and_open_and_reports_to_retired) {
  Hold();
  Launch();
  EXPECT_EQ(driver.words.gate, reinterpret_cast<uint32_t*>(&block.gate));
  EXPECT_EQ(driver.words.gate_mask, ipc::kDeviceGateMask);
  EXPECT_EQ(driver.words.retired, reinterpret_cast<uint64_t*>(&block.retired));
  EXPECT_EQ(driver.words.memory, &block);
  EXPECT_EQ(driver.words.pause, nullptr);
  EXPECT_EQ(driver.words.passed, nullptr);
}

TEST_F(DeviceGatesTest, a_pausable_queue_has_gates_although_nobody_schedules_it) {
  flow->MakePausable();
  Launch();
  state.SetSuspended(true);
  Launch();
  ASSERT_EQ(gates(), 1u);
  EXPECT_EQ(driver.words.pause, reinterpret_cast<uint32_t*>(&block.pause));
  EXPECT_EQ(driver.words.passed, reinterpret_cast<uint64_t*>(&block.passed));
}

TEST_F(DeviceGatesTest, gates_tell_that_they_are_passed_while_overruns_are_charged) {
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  flow->BeforeLaunch(state.CountLaunch(), state.flags());
  EXPECT_EQ(driver.words.pause, nullptr);
  EXPECT_EQ(driver.words.passed, reinterpret_cast<uint64_t*>(&block.passed));
}

TEST_F(DeviceGatesTest, a_held_queue_tells_that_the_device_waits_at_a_gate_that_it_has_not_passed) {
  LetRun();
  block.flags |= ipc::kFlagChargesOverruns;
  Launch(3);
  ASSERT_EQ(gates(), 2u) << "the pace is not known: one in front of each command but the first";
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  flow->OnQuery();
  state.RetiredUpTo(1);
  block.passed = 1;
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 0u) << "the second command runs";
  EXPECT_TRUE(flow->OverrunIsPolled());
  state.RetiredUpTo(2);
  flow->PollOverrun();
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 1u);
  EXPECT_FALSE(flow->OverrunIsPolled());
  flow->OnQuery();
  EXPECT_TRUE(flow->OverrunIsPolled());
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 2u) << "it was let run and held again meanwhile";
}

TEST_F(DeviceGatesTest, behind_the_last_gate_the_driver_tells_whether_the_device_has_more_of_a_held_queue) {
  LetRun();
  Launch();
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  flow->OnQuery();
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 0u);
  driver.Run();
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 1u);
}

TEST_F(DeviceGatesTest, a_gate_from_before_overruns_were_charged_is_where_a_held_queue_ends) {
  LetRun();
  Launch(3);
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  flow->OnQuery();
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 0u);
  state.RetiredUpTo(1);
  flow->PollOverrun();
  EXPECT_EQ(block.drained, 1u) << "it may have passed this gate, but nothing would ever tell";
}

TEST_F(DeviceGatesTest, at_level_1_there_are_no_more_commands_between_gates_than_the_config_says) {
  LetRun();
  state.SetConfig({2, 1});
  Launch(21);
  EXPECT_GE(gates(), 9u);
}

TEST_F(DeviceGatesTest, a_driver_that_refused_a_gate_is_asked_for_no_other) {
  driver.refuses_gates = true;
  Hold();
  Launch(5);
  EXPECT_EQ(gates(), 1u);
}

TEST_F(DeviceGatesTest, commands_of_a_tracked_queue_report_from_time_to_time) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(10);
  EXPECT_EQ(reports(), 1u);
  fake_now += milliseconds(10);
  Launch(10);
  EXPECT_EQ(reports(), 2u);
}

TEST_F(DeviceGatesTest, every_command_of_a_tracked_queue_reports_if_only_its_thread_may_ask_the_driver) {
  driver.ops.finished = nullptr;
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  Launch(10);
  EXPECT_EQ(reports(), 10u);
}

TEST_F(DeviceGatesTest, a_command_reports_only_if_the_driver_has_all_before_it) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  const uint64_t of_slow_thread = state.CountLaunch();
  const uint64_t of_fast_thread = state.CountLaunch();
  flow->AfterLaunch(of_fast_thread);
  EXPECT_EQ(reports(), 0u) << "the driver will get the first command behind this report";
  state.CountIssued();
  flow->AfterLaunch(of_slow_thread);
  state.CountIssued();
  ASSERT_EQ(reports(), 1u);
  EXPECT_EQ(driver.items.back().value, of_fast_thread) << "the driver has both";
}

TEST_F(DeviceGatesTest, a_command_reports_although_a_later_one_is_about_to_be_launched) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  const uint64_t first = state.CountLaunch();
  state.CountLaunch();
  flow->AfterLaunch(first);
  ASSERT_EQ(reports(), 1u);
  EXPECT_EQ(driver.items.back().value, first);
}

TEST_F(DeviceGatesTest, the_device_is_at_work_until_its_last_report_has_come) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(3);
  EXPECT_TRUE(flow->DeviceAtWork());
  flow->AppendLastReport();
  state.RetiredUpTo(1);
  EXPECT_TRUE(flow->DeviceAtWork());
  state.RetiredUpTo(3);
  EXPECT_FALSE(flow->DeviceAtWork());
}

TEST_F(DeviceGatesTest, the_device_is_at_work_while_it_waits_at_its_last_gate) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(2);
  Hold();
  Launch();
  ASSERT_EQ(driver.items.back().kind, Item::kCommand) << "too soon for another report";
  state.RetiredUpTo(2);
  EXPECT_TRUE(flow->DeviceAtWork());
  flow->AppendLastReport();
  ASSERT_EQ(reports(), 2u);
  EXPECT_EQ(driver.items.back().value, 3u);
  state.RetiredUpTo(3);
  EXPECT_FALSE(flow->DeviceAtWork());
}

TEST_F(DeviceGatesTest, a_command_of_a_tracked_queue_reports_although_a_gate_is_in_front_of_it) {
  Launch();
  Hold();
  fake_now += milliseconds(10);
  Launch();
  EXPECT_EQ(gates(), 1u);
  EXPECT_EQ(reports(), 1u);
}

TEST_F(DeviceGatesTest, a_queue_that_never_reported_needs_no_last_report) {
  Launch(3);
  flow->AppendLastReport();
  EXPECT_EQ(reports(), 0u);
}

TEST_F(DeviceGatesTest, a_failed_context_that_takes_no_last_report_is_not_at_work_any_more) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(3);
  driver.ops.append_progress = [](void*, const XControlWords*, uint64_t) { return kXSchedErrorHardware; };
  driver.ops.finished = [](void*) { return true; };
  flow->AppendLastReport();
  EXPECT_FALSE(flow->DeviceAtWork());
}

TEST_F(DeviceGatesTest, a_draining_queue_whose_context_fails_gets_no_more_reports) {
  static bool lost;
  lost = false;
  driver.ops.context_lost = [](void*) { return lost; };
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(700);
  flow->RequestProgress();
  state.SetDraining(true);
  EXPECT_TRUE(flow->AnswerIsNear()) << "only its context is asked about";
  flow->RequestProgress();
  EXPECT_TRUE(flow->DeviceAtWork());
  lost = true;
  flow->RequestProgress();
  EXPECT_FALSE(flow->DeviceAtWork());
  EXPECT_TRUE(state.Idle());
}

TEST_F(DeviceGatesTest, a_context_that_goes_is_not_asked_about_any_more) {
  driver.ops.context_lost = [](void* self) {
    static_cast<FakeHwQueue*>(self)->calls.push_back("context_lost");
    return true;
  };
  Launch();
  state.SetDraining(true);
  state.SetContextGoes(true);
  flow->AskContext();
  EXPECT_TRUE(driver.calls.empty());
  EXPECT_FALSE(state.Idle());
  flow->NoMoreReports();
  EXPECT_TRUE(state.Idle());
}

TEST_F(DeviceGatesTest, a_full_stream_is_asked_about_only_when_launching_has_paused_and_it_may_run) {
  Launch(700);
  EXPECT_FALSE(flow->AnswerIsNear());
  fake_now += milliseconds(2);
  Hold();
  EXPECT_FALSE(flow->AnswerIsNear());
  LetRun();
  EXPECT_TRUE(flow->AnswerIsNear());
  Launch();
  EXPECT_FALSE(flow->AnswerIsNear());
}

TEST_F(DeviceGatesTest, a_full_stream_whose_launches_return_moves_and_one_that_is_stuck_does_not) {
  Launch(700);
  state.CountLaunch();
  flow->OnQuery();
  flow->OnQuery();
  EXPECT_EQ(block.moved, 0u) << "no launch has returned in between";
  state.CountIssued();
  state.CountLaunch();
  flow->OnQuery();
  EXPECT_EQ(block.moved, 1u);
}

TEST_F(DeviceGatesTest, the_device_waits_for_the_scheduler_and_the_worker_only_for_the_program) {
  Hold();
  EXPECT_TRUE(flow->MayLaunch(1000));
  EXPECT_FALSE(flow->KeepsStill()) << "the scheduler opens the gate, and this process does not hear of it";
  state.SetSuspended(true);
  EXPECT_FALSE(flow->MayLaunch(1));
  EXPECT_TRUE(flow->KeepsStill());
}

TEST_F(DeviceGatesTest, a_queue_that_was_suspended_before_its_first_command_stops_at_the_gate_before_it) {
  flow->MakePausable();
  state.SetSuspended(true);
  Launch();
  ASSERT_EQ(gates(), 1u);
  int checks = 0;
  const auto give_up = [](const void* count) {
    return ++*static_cast<int*>(const_cast<void*>(count)) == 1000;
  };
  flow->WaitStopped(give_up, &checks);
  EXPECT_EQ(checks, 2);
  block.passed = 0;
  flow->WaitStopped(give_up, &checks);
  EXPECT_EQ(checks, 1000) << "it has passed the gate before the first command, which may run";
}

TEST_F(DeviceGatesTest,
       a_suspended_queue_has_stopped_when_the_device_waits_at_a_gate_that_it_has_not_passed) {
  flow->MakePausable();
  Launch();
  state.SetSuspended(true);
  Launch();
  ASSERT_EQ(gates(), 1u);
  int checks = 0;
  const auto retire_at_third_check = [](const void* count) {
    auto& seen = *static_cast<int*>(const_cast<void*>(count));
    return ++seen == 1000;
  };
  block.retired = 1;
  flow->WaitStopped(retire_at_third_check, &checks);
  EXPECT_EQ(checks, 2) << "checked twice, for a device that was just passing a gate";
  block.passed = 1;
  flow->WaitStopped(retire_at_third_check, &checks);
  EXPECT_EQ(checks, 1000) << "it has passed the gate, so its commands may run";
}

class OnlyLauncherAsksTest : public DeviceGatesTest {
 protected:
  OnlyLauncherAsksTest() { driver.ops.finished = nullptr; }
  static bool NothingHappens(const void*) { return false; }
  static bool TheDeviceReachesTheGate(const void* test) {
    Of(test).block.retired = 1;
    return false;
  }
  static bool TheDeviceReports(const void* test) {
    if (Of(test).reports() == 1) Of(test).block.retired = Of(test).driver.items.back().value;
    return false;
  }

 private:
  static OnlyLauncherAsksTest& Of(const void* test) {
    return *static_cast<OnlyLauncherAsksTest*>(const_cast<void*>(test));
  }
};

TEST_F(OnlyLauncherAsksTest, another_thread_does_not_wait_for_what_will_not_be_reported) {
  driver.ops.takes_reports = [](void*) { return false; };
  flow->MakePausable();
  Launch(2);
  ASSERT_EQ(gates(), 1u);
  block.retired = 1;
  block.passed = 1;
  EXPECT_FALSE(flow->WaitStopped(&NothingHappens, nullptr));
  EXPECT_EQ(reports(), 0u);
}

TEST_F(OnlyLauncherAsksTest, another_thread_waits_for_what_will_be_reported) {
  driver.ops.takes_reports = [](void*) { return false; };
  flow->MakePausable();
  Launch(2);
  EXPECT_TRUE(flow->WaitStopped(&TheDeviceReachesTheGate, this));
}

TEST_F(OnlyLauncherAsksTest, the_launching_thread_waits_for_a_report_behind_all_commands) {
  Launch(2);
  EXPECT_TRUE(flow->WaitStopped(&TheDeviceReports, this));
  EXPECT_EQ(state.retired(), 2u);
}

}  // namespace
}  // namespace xsched::preempt::testing
