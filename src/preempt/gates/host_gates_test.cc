#include "preempt/gates/host_gates.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "preempt/gates/testing/flow_test.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Item = FakeHwQueue::Item;

class HostGatesTest : public FlowTest {
 protected:
  HostGatesTest() : FlowTest(kGatingHostGates) {
    driver.ops.flush = [](void* self) { static_cast<FakeHwQueue*>(self)->calls.push_back("flush"); };
    Begin();
  }
  // The hold ends while the launch puts its gate. So the thread that ends it does not see this gate.
  void LaunchAsTheHoldEnds() {
    driver.ops.append_gate = [](void* self, uint64_t* gate) {
      auto& queue = *static_cast<FakeHwQueue*>(self);
      *gate = ++queue.gates;
      queue.items.push_back({Item::kGate, *gate});
      queue.state->block().gate = ipc::kGateRun;
      return kXSchedSuccess;
    };
    Hold();
    Launch();
  }
};

TEST_F(HostGatesTest, a_held_queue_takes_commands_and_starts_none) {
  Hold();
  Launch(3);
  Run();
  EXPECT_THAT(driver.ran, IsEmpty());
  EXPECT_GT(state.closed_gates, 0u);
}

TEST_F(HostGatesTest, gates_open_when_the_queue_may_run_and_then_the_driver_is_flushed) {
  Hold();
  Launch(3);
  driver.calls.clear();
  EXPECT_TRUE(flow->Advance());
  EXPECT_THAT(driver.calls, IsEmpty()) << "nothing was opened";
  LetRun();
  EXPECT_TRUE(flow->Advance());
  EXPECT_THAT(driver.calls, ElementsAre("flush"));
  for (int i = 0; i < 3; ++i) {
    Run();
    flow->Advance();
  }
  EXPECT_THAT(driver.ran, ElementsAre(1, 2, 3));
  EXPECT_EQ(state.closed_gates, 0u);
}

// The thread that opens gates has seen the queue as it was before.
TEST_F(HostGatesTest, what_changes_while_a_thread_opens_gates_is_acted_on_by_that_thread) {
  static std::function<void()> meanwhile;
  driver.ops.open_gate = [](void* self, uint64_t gate) {
    static_cast<FakeHwQueue*>(self)->opened = gate;
    if (const auto change = std::exchange(meanwhile, nullptr)) std::thread(change).join();
    return kXSchedSuccess;
  };
  Hold();
  Launch(5);
  LetRun();
  meanwhile = [&] {
    state.block().flags = 0;
    EXPECT_TRUE(flow->Advance()) << "it does not wait";
  };
  flow->Advance();
  EXPECT_EQ(state.closed_gates, 0u);
}

// The thread that let the queue run looked for gates before this one existed.
TEST_F(HostGatesTest, a_gate_that_comes_after_its_hold_has_ended_is_opened_by_the_launching_thread) {
  LaunchAsTheHoldEnds();
  EXPECT_EQ(state.closed_gates, 0u);
  Run();
  EXPECT_THAT(driver.ran, ElementsAre(1));
}

// The call may take long, and the end of the queue does not wait for that.
TEST_F(HostGatesTest, such_a_gate_is_left_to_others_if_opening_it_may_run_commands) {
  driver.ops.opening_runs_commands = true;
  LaunchAsTheHoldEnds();
  EXPECT_EQ(state.closed_gates, 1u);
  EXPECT_EQ(driver.opened, 0u);
  EXPECT_EQ(give_back_later, 1);
  flow->Advance();
  EXPECT_EQ(driver.opened, 1u);
}

TEST_F(HostGatesTest, such_a_gate_is_opened_by_the_launching_thread_if_no_other_can_be_started) {
  agent_runs = false;
  driver.ops.opening_runs_commands = true;
  LaunchAsTheHoldEnds();
  EXPECT_EQ(state.closed_gates, 0u);
  EXPECT_EQ(driver.opened, 1u);
}

TEST_F(HostGatesTest, the_next_queue_in_a_slot_has_no_gate_that_the_driver_never_opened) {
  Hold();
  Launch();
  driver.refuses_opening = true;
  LetRun();
  EXPECT_FALSE(flow->Advance());
  driver.refuses_opening = false;
  Begin();
  EXPECT_EQ(state.closed_gates, 0u);
  EXPECT_TRUE(flow->Advance());
  EXPECT_EQ(driver.opened, 0u) << "it is another driver's";
}

// Nobody else comes to open it.
TEST_F(HostGatesTest, a_gate_that_comes_after_the_scheduler_has_gone_is_opened_by_the_launching_thread) {
  driver.ops.append_gate = [](void* self, uint64_t* gate) {
    auto& queue = *static_cast<FakeHwQueue*>(self);
    *gate = ++queue.gates;
    queue.items.push_back({Item::kGate, *gate});
    queue.state->block().flags = 0;
    return kXSchedSuccess;
  };
  LetRun();
  Launch(3);
  EXPECT_EQ(driver.Count(Item::kGate), 1u) << "a gate was put";
  EXPECT_EQ(state.closed_gates, 0u);
}

// A command in flight waits for one behind a gate: on an out-of-order queue, or for a thread that waits for
// it.
TEST_F(HostGatesTest, a_queue_that_may_run_and_retires_nothing_for_a_second_gets_the_next_command) {
  using std::chrono::milliseconds;
  LetRun();
  Launch(5);
  const auto gates_after = [&](milliseconds time) {
    fake_now += time;
    flow->Advance();
    return state.closed_gates.load();
  };
  ASSERT_EQ(gates_after(milliseconds(900)), 3u);
  EXPECT_EQ(gates_after(milliseconds(100)), 2u);
  EXPECT_EQ(gates_after(milliseconds(900)), 2u) << "one each second, so that it can still be held";
  EXPECT_EQ(gates_after(milliseconds(100)), 1u);
}

TEST_F(HostGatesTest, a_queue_is_not_let_go_for_the_time_in_which_it_was_held) {
  using std::chrono::milliseconds;
  LetRun();
  Launch(5);
  Hold();
  for (int i = 0; i < 3; ++i) {
    fake_now += milliseconds(900);
    flow->Advance();
  }
  LetRun();
  fake_now += milliseconds(900);
  flow->Advance();
  EXPECT_EQ(state.closed_gates, 3u);
}

// An urgent program beside it does some work from time to time.
TEST_F(HostGatesTest, a_queue_that_is_held_again_and_again_is_let_go_after_a_second_in_which_it_could_run) {
  using std::chrono::milliseconds;
  LetRun();
  Launch(5);
  const auto held_and_run = [&] {
    Hold();
    flow->Advance();
    fake_now += milliseconds(50);
    LetRun();
    flow->Advance();
    fake_now += milliseconds(100);
    flow->Advance();
    return state.closed_gates.load();
  };
  for (int i = 0; i < 9; ++i) ASSERT_EQ(held_and_run(), 3u);
  EXPECT_EQ(held_and_run(), 2u);
}

TEST_F(HostGatesTest, a_queue_that_retires_something_while_it_is_held_is_let_go_a_second_after_the_hold) {
  using std::chrono::milliseconds;
  LetRun();
  Launch(20);
  const auto gates_after = [&](milliseconds time) {
    fake_now += time;
    flow->Advance();
    return state.closed_gates.load();
  };
  Run(1);
  gates_after(milliseconds(100));
  Hold();
  gates_after(milliseconds(0));
  fake_now += milliseconds(300);
  Run(1);
  gates_after(milliseconds(300));
  LetRun();
  const uint32_t gates = gates_after(milliseconds(0));
  EXPECT_EQ(gates_after(milliseconds(900)), gates);
  EXPECT_EQ(gates_after(milliseconds(100)), gates - 1);
}

TEST_F(HostGatesTest, a_queue_with_commands_of_seconds_is_not_let_go) {
  LetRun();
  Launch(8);
  for (int i = 0; i < 3; ++i) {
    fake_now += std::chrono::seconds(3);
    Run();
    flow->Advance();
  }
  const uint32_t gates = state.closed_gates;
  ASSERT_GT(gates, 0u);
  fake_now += std::chrono::seconds(2);
  flow->Advance();
  EXPECT_EQ(state.closed_gates, gates);
}

TEST_F(HostGatesTest, a_queue_that_may_be_held_has_no_more_in_flight_than_its_config_says) {
  LetRun();
  Launch(100);
  driver.Run();
  EXPECT_LE(driver.ran.size(), 16u);
  EXPECT_GE(driver.ran.size(), 1u);
}

TEST_F(HostGatesTest, long_commands_go_one_by_one_and_two_where_overruns_harm_nobody) {
  LetRun();
  Launch(20);
  const auto run_long = [&] {
    for (int i = 0; i < 4; ++i) {
      fake_now += std::chrono::milliseconds(5);
      driver.ran.clear();
      Run();
      flow->Advance();
    }
    return driver.ran.size();
  };
  EXPECT_EQ(run_long(), 1u);
  block.flags |= ipc::kFlagChargesOverruns | ipc::kFlagStopsSoon;
  EXPECT_EQ(run_long(), 1u);
  block.flags &= ~ipc::kFlagStopsSoon;
  EXPECT_EQ(run_long(), 2u);
}

TEST_F(HostGatesTest, gates_of_an_out_of_order_queue_with_many_commands_are_far_apart) {
  driver.ops.out_of_order = true;
  LetRun();
  Launch(1000);
  EXPECT_LE(driver.Count(Item::kGate), 200u);
}

// It was let run, and held again before the agent came to open the first gate. Untold, the scheduler charges
// it for ever, and it and its tenant get no more turns.
TEST_F(HostGatesTest, a_held_queue_of_which_nothing_has_run_yet_tells_that_the_device_has_nothing_of_it) {
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  Launch(3);
  flow->OnQuery();
  flow->Advance();
  EXPECT_EQ(block.drained, 1u);
  flow->Advance();
  EXPECT_EQ(block.drained, 1u) << "once";
}

// No gate is closed, so nothing else makes the agent look again.
TEST_F(HostGatesTest, a_question_marks_the_last_commands_although_a_marker_in_front_of_them_is_under_way) {
  LetRun();
  block.flags |= ipc::kFlagChargesOverruns;
  Launch(2);
  const size_t before = driver.Count(Item::kMarker);
  ASSERT_GE(before, 1u);
  ASSERT_TRUE(state.markers.UnderWay());
  block.gate = ipc::kGateHold;
  flow->OnQuery();
  flow->RequestProgress();
  flow->RequestProgress();
  EXPECT_EQ(driver.Count(Item::kMarker), before + 1);
  Run();
  EXPECT_EQ(state.retired(), 2u);
}

TEST_F(HostGatesTest, the_submission_worker_marks_what_is_in_flight_after_a_suspension) {
  Begin({2, 8});
  Launch(2);
  state.SetSuspended(true);
  std::thread worker([&] { flow->WaitUntilMayLaunch(3); });
  std::this_thread::yield();
  state.SetSuspended(false);
  while (!state.markers.UnderWay()) state.waiters.NotifyIfAny();
  state.MarkerReached(2);
  worker.join();
  EXPECT_TRUE(state.Idle());
}

// The second one would run for long after a hold, and the device waits for the host for a small part of
// one.
TEST_F(HostGatesTest, very_long_commands_go_one_by_one_also_where_overruns_harm_nobody) {
  LetRun();
  block.flags |= ipc::kFlagChargesOverruns;
  Launch(20);
  for (int i = 0; i < 4; ++i) {
    fake_now += std::chrono::milliseconds(20);
    driver.ran.clear();
    Run();
    flow->Advance();
  }
  EXPECT_EQ(driver.ran.size(), 1u);
}

TEST_F(HostGatesTest, a_held_queue_tells_once_that_the_device_has_nothing_more_of_it) {
  LetRun();
  block.flags |= ipc::kFlagChargesOverruns;
  Launch(6);
  Run(1);
  flow->Advance();
  EXPECT_THAT(rung, IsEmpty()) << "it is not held";
  block.gate = ipc::kGateHold;
  flow->Advance();
  EXPECT_EQ(block.drained, 0u) << "a command is on the device";
  Run();
  flow->Advance();
  flow->Advance();
  EXPECT_EQ(block.drained, 1u);
  EXPECT_THAT(rung, ElementsAre(3));
  // It was let run and held again before a gate was opened.
  flow->OnQuery();
  flow->Advance();
  EXPECT_EQ(block.drained, 2u);
  block.gate = ipc::kGateRun;
  flow->Advance();
  block.gate = ipc::kGateHold;
  Run();
  flow->Advance();
  EXPECT_EQ(block.drained, 3u);
}

TEST_F(HostGatesTest, a_scheduler_that_charges_no_overruns_is_not_told_of_them) {
  LetRun();
  Launch(6);
  Hold();
  Run();
  flow->Advance();
  EXPECT_THAT(rung, IsEmpty());
}

TEST_F(HostGatesTest, a_queue_of_a_process_that_ends_gets_no_gate) {
  Hold();
  process.ShutDown();
  Launch(50);
  EXPECT_EQ(driver.Count(Item::kGate), 0u);
}

TEST_F(HostGatesTest, a_stop_is_awaited_until_what_is_in_front_of_the_gate_has_finished) {
  LetRun();
  Launch();
  Hold();
  Launch();
  std::thread waiting([&] { flow->WaitStopped(nullptr, nullptr); });
  Run();
  waiting.join();
  EXPECT_THAT(driver.ran, ElementsAre(1));
}

TEST_F(HostGatesTest, a_stop_of_a_queue_without_gates_is_awaited_until_all_has_finished) {
  Launch(2);
  std::thread waiting([&] { flow->WaitStopped(nullptr, nullptr); });
  while (!state.markers.UnderWay()) std::this_thread::yield();
  state.MarkerReached(2);
  waiting.join();
  EXPECT_TRUE(state.Idle());
}

TEST_F(HostGatesTest, the_slots_next_queue_begins_with_no_marker_and_no_pace) {
  LetRun();
  Launch(20);
  for (int i = 0; i < 20 && !state.Idle(); ++i) {
    fake_now += std::chrono::seconds(1);
    Run();
    flow->Advance();
    flow->RequestProgress();
  }
  ASSERT_TRUE(state.Idle());
  block.submitted = block.retired = 0;
  Begin();
  driver.items.clear();
  driver.next = 0;
  Launch(3);
  EXPECT_THAT(driver.items, Each(::testing::Field(&Item::value, ::testing::Ne(0u))));
  EXPECT_GE(driver.Count(Item::kMarker), 1u) << "the last queue's markers are not this one's";
}

}  // namespace
}  // namespace xsched::preempt::testing
