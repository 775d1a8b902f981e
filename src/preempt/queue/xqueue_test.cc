#include "preempt/queue/xqueue.h"

#include <gmock/gmock.h>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Item = FakeDriver::Item;

class XQueueTest : public FakeProcess {
 protected:
  // It can be stopped, has a command on the device, and others wait for the end of that.
  XQueue& HoldOneWhoseEndIsAskedFor() {
    XQueue& queue = Make(stops_polled_, kPreemptLevelDeactivate);
    Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated | ipc::kFlagChargesOverruns);
    Launch(stops_polled_);
    queue.block().gate = ipc::kGateHold;
    queue.block().query = 1;
    queue.Attend();
    return queue;
  }

  FakeDriver driver_{kGatingHostGates};
  FakeDriver stops_{kGatingHostGates, kPreemptLevelInterrupt};
  FakeDriver stops_polled_{kGatingCallerWaits, kPreemptLevelDeactivate, true};
};

TEST_F(XQueueTest, a_queue_that_nobody_schedules_tells_nobody_of_its_launches) {
  XQueue& queue = Make(driver_);
  Launch(driver_, 100);
  EXPECT_EQ(queue.submitted(), 100u);
  EXPECT_EQ(queue.issued(), 100u);
  EXPECT_EQ(driver_.items.size(), 100u) << "no gate, no marker";
  EXPECT_THAT(rung, IsEmpty());
  EXPECT_EQ(taken_seen, 0);
}

TEST_F(XQueueTest, the_first_launch_of_a_tracked_queue_rings_the_scheduler_and_later_ones_do_not) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_, 5);
  EXPECT_THAT(rung, ElementsAre(queue.index()));
  EXPECT_EQ(taken_seen, 5);
}

TEST_F(XQueueTest, a_queue_that_becomes_idle_rings_once) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_, 2);
  rung.clear();
  queue.RetiredUpTo(1);
  EXPECT_THAT(rung, IsEmpty());
  queue.RetiredUpTo(2);
  queue.RetiredUpTo(2);
  EXPECT_THAT(rung, ElementsAre(queue.index()));
}

// The device has stored `retired` itself, before a marker or a wait of the program says the same.
TEST_F(XQueueTest, a_queue_that_the_device_has_shown_to_be_idle_rings_once) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_);
  rung.clear();
  queue.block().retired = 1;
  queue.RetiredUpTo(1);
  queue.RetiredUpTo(1);
  EXPECT_THAT(rung, ElementsAre(queue.index()));
}

TEST_F(XQueueTest, a_launch_that_the_driver_refuses_counts_as_finished) {
  XQueue& queue = Make(driver_);
  queue.LaunchEnd(queue.LaunchBegin(), false);
  EXPECT_TRUE(queue.Idle());
}

TEST_F(XQueueTest, a_held_queue_accepts_launches_and_starts_them_when_it_may) {
  XQueue& queue = Make(driver_);
  Hold(queue);
  Launch(driver_, 10);
  Run(driver_);
  EXPECT_THAT(driver_.ran, IsEmpty());
  LetRun(queue);
  for (int i = 0; i < 20; ++i) {
    queue.Attend();
    Run(driver_);
  }
  EXPECT_EQ(driver_.ran.size(), 10u);
  EXPECT_FALSE(queue.HasClosedGates());
}

TEST_F(XQueueTest, a_left_scheduler_holds_nobody) {
  XQueue& queue = Make(driver_);
  Hold(queue);
  EXPECT_TRUE(queue.Held());
  state.SetScheduled(false);
  EXPECT_FALSE(queue.Held());
}

TEST_F(XQueueTest, a_scheduler_that_asks_is_answered_at_once_and_when_more_is_known) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_, 3);
  rung.clear();
  queue.block().query = 1;
  queue.Attend();
  EXPECT_THAT(rung, ElementsAre(queue.index()));
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kProgress}));
  queue.Attend();
  EXPECT_EQ(rung.size(), 1u) << "it has asked once";
  queue.RetiredUpTo(1);
  EXPECT_EQ(rung.size(), 2u);
  queue.RetiredUpTo(2);
  EXPECT_EQ(rung.size(), 2u);
}

TEST_F(XQueueTest, bursts_of_a_queue_that_reports_are_counted) {
  XQueue& queue = Make(driver_);
  Report(queue);
  for (uint64_t number = 1; number <= 2; ++number) {
    Launch(driver_);
    fake_now += milliseconds(2);
    queue.RetiredUpTo(number);
    fake_now += milliseconds(5);
  }
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 2u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(4));
}

TEST_F(XQueueTest, the_end_of_a_burst_that_the_driver_tells_of_is_counted_once) {
  XQueue& queue = Make(driver_);
  Report(queue);
  Launch(driver_);
  queue.block().query = 1;
  queue.Attend();
  queue.AskDriver();
  fake_now += milliseconds(2);
  Run(driver_);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u);
  fake_now += milliseconds(5);
  queue.RetiredUpTo(1);
  queue.block().query = 2;
  queue.Attend();
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(2));
}

// The driver is not asked about a stopped queue.
TEST_F(XQueueTest, a_queue_that_was_stopped_tells_once_that_the_device_has_nothing_more_of_it) {
  stops_polled_.ops.deactivate_interrupts = true;
  XQueue& queue = HoldOneWhoseEndIsAskedFor();
  ASSERT_TRUE(stops_polled_.deactivated);
  EXPECT_EQ(queue.block().drained, 1u);
  EXPECT_FALSE(queue.OverrunIsPolled());
  queue.Attend();
  EXPECT_EQ(queue.block().drained, 1u);
  queue.block().query = 2;
  queue.Attend();
  EXPECT_EQ(queue.block().drained, 2u);
}

// It goes on when another queue launches.
TEST_F(XQueueTest, a_queue_that_is_stopped_with_its_process_tells_nothing_of_its_end) {
  stops_polled_.StopsWholeProcess();
  XQueue& queue = HoldOneWhoseEndIsAskedFor();
  EXPECT_EQ(queue.block().drained, 0u);
}

TEST_F(XQueueTest, a_suspended_queue_starts_nothing_until_it_is_resumed) {
  XQueue& queue = Make(driver_, kPreemptLevelBlock, true);
  queue.Suspend(true);
  Launch(driver_, 3);
  Run(driver_);
  EXPECT_THAT(driver_.ran, IsEmpty());
  queue.Suspend(false);
  Run(driver_);
  EXPECT_THAT(driver_.ran, ElementsAre(1, 2, 3));
  EXPECT_EQ(give_back_later, 0);
}

TEST_F(XQueueTest, a_resume_that_gives_back_too_little_is_left_to_the_agent) {
  XQueue& queue = Make(stops_, kPreemptLevelInterrupt, true);
  queue.Suspend(true);
  stops_.refuses_control = true;
  queue.Suspend(false);
  EXPECT_EQ(give_back_later, 1);
  stops_.refuses_control = false;
  settled = false;
  queue.SetLevel(kPreemptLevelInterrupt);
  EXPECT_EQ(give_back_later, 2) << "the queue goes on, its process does not";
}

TEST_F(XQueueTest, nothing_is_held_any_more_when_the_process_ends) {
  XQueue& queue = Make(driver_);
  Hold(queue);
  Launch(driver_, 3);
  state.ShutDown();
  queue.Attend();
  Run(driver_);
  EXPECT_EQ(driver_.ran.size(), 3u);
  const size_t gates = driver_.Count(Item::kGate);
  Launch(driver_);
  EXPECT_EQ(driver_.Count(Item::kGate), gates) << "no new gate";
}

// ---- device gates ----

class DeviceGatesTest : public FakeProcess {
 protected:
  FakeDriver driver_{kGatingDeviceGates};
};

TEST_F(DeviceGatesTest, a_held_queue_gets_a_gate_in_front_of_its_next_command) {
  XQueue& queue = Make(driver_);
  Launch(driver_, 2);
  EXPECT_EQ(driver_.Count(Item::kGate), 0u);
  Hold(queue);
  Launch(driver_);
  ASSERT_EQ(driver_.Count(Item::kGate), 1u);
  EXPECT_EQ(driver_.items[2].value, 2u);
  EXPECT_EQ(driver_.words.gate_mask, ipc::kDeviceGateMask);
  EXPECT_EQ(driver_.words.pause, nullptr) << "the program does not have the queue by its handle";
}

// taken_seen counts the launches that are not quiet.
TEST_F(DeviceGatesTest, launches_of_a_scheduled_queue_are_quiet_between_gates_while_the_agent_watches) {
  XQueue& queue = Make(driver_);
  LetRun(queue);
  Launch(driver_, 3);
  fake_now += std::chrono::microseconds(25);
  queue.RetiredUpTo(1);
  Launch(driver_);  // four commands take the wanted latency
  taken_seen = 0;
  Launch(driver_, 40);
  EXPECT_EQ(taken_seen, 40) << "the agent does not watch";
  EXPECT_GT(driver_.Count(Item::kGate), 5u);
  state.taken_watch.Begin();
  const size_t gates = driver_.Count(Item::kGate);
  Launch(driver_, 40);
  EXPECT_EQ(taken_seen, 40 + 10) << "those that get a gate";
  EXPECT_EQ(driver_.Count(Item::kGate), gates + 10);
}

TEST_F(DeviceGatesTest, a_quiet_launch_sees_what_changes) {
  XQueue& queue = Make(driver_);
  state.taken_watch.Begin();
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_, 3);
  taken_seen = 0;
  Launch(driver_);
  ASSERT_EQ(taken_seen, 0) << "it is quiet";
  queue.RetiredUpTo(1);
  Launch(driver_);
  EXPECT_EQ(taken_seen, 1) << "progress";
  LetRun(queue);
  Launch(driver_);
  EXPECT_EQ(taken_seen, 2) << "flags";
  Hold(queue);
  Launch(driver_);
  EXPECT_EQ(taken_seen, 3) << "a hold";
  LetRun(queue);
  queue.RetiredUpTo(queue.submitted());
  rung.clear();
  Launch(driver_);
  EXPECT_EQ(rung.size(), 1u) << "a new burst";
}

TEST_F(DeviceGatesTest, a_queue_with_quiet_launches_reports_from_time_to_time) {
  XQueue& queue = Make(driver_);
  state.taken_watch.Begin();
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_, 40);
  const size_t reports = driver_.Count(Item::kReport);
  fake_now += std::chrono::milliseconds(10);
  Launch(driver_, 40);
  EXPECT_EQ(driver_.Count(Item::kReport), reports + 1);
}

TEST_F(DeviceGatesTest, a_gate_of_a_queue_that_the_program_may_suspend_waits_for_its_word_too) {
  XQueue& queue = Make(driver_, kPreemptLevelBlock, true);
  queue.Suspend(true);
  Launch(driver_);
  ASSERT_EQ(driver_.Count(Item::kGate), 1u);
  EXPECT_EQ(driver_.words.pause, reinterpret_cast<uint32_t*>(&queue.block().pause));
}

TEST_F(DeviceGatesTest, a_driver_that_refuses_a_gate_is_asked_for_none_any_more) {
  XQueue& queue = Make(driver_);
  driver_.refuses_gates = true;
  Hold(queue);
  Launch(driver_, 5);
  EXPECT_EQ(driver_.Count(Item::kGate), 1u);
}

TEST_F(DeviceGatesTest, a_slot_is_at_work_until_its_last_report_has_come) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_);
  fake_now += std::chrono::seconds(1);
  Launch(driver_);
  EXPECT_TRUE(queue.DeviceAtWork());
  queue.RetiredUpTo(2);
  EXPECT_FALSE(queue.DeviceAtWork());
}

TEST_F(DeviceGatesTest, a_full_stream_is_asked_about_only_when_launching_has_paused) {
  XQueue& queue = Make(driver_);
  Launch(driver_, 700);
  driver_.Run();
  queue.AskDriver();
  EXPECT_FALSE(queue.Idle());
  fake_now += std::chrono::milliseconds(2);
  queue.AskDriver();
  EXPECT_TRUE(queue.Idle());
}

// Then the driver is not asked, and nothing else would tell.
TEST_F(DeviceGatesTest,
       a_held_queue_that_has_finished_when_the_scheduler_asks_tells_that_the_device_has_nothing_of_it) {
  XQueue& queue = Make(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated | ipc::kFlagChargesOverruns);
  Launch(driver_);
  queue.block().gate = ipc::kGateHold;
  queue.RetiredUpTo(1);
  queue.block().query = 1;
  queue.Attend();
  EXPECT_EQ(queue.block().drained, 1u);
}

// A device reports to the control block, and counts no bursts.
TEST_F(DeviceGatesTest, the_end_of_a_burst_that_the_device_reported_is_counted_when_the_scheduler_asks) {
  XQueue& queue = Make(driver_);
  Report(queue);
  Launch(driver_);
  fake_now += milliseconds(2);
  queue.block().retired = 1;
  queue.block().query = 1;
  queue.Attend();
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(2));
  fake_now += milliseconds(5);
  queue.RetiredUpTo(1);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u) << "the program waits for it later";
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(2));
}

TEST_F(DeviceGatesTest,
       the_end_of_a_burst_of_a_held_queue_is_counted_when_the_device_has_nothing_more_of_it) {
  XQueue& queue = Make(driver_);
  Report(queue, ipc::kFlagGated | ipc::kFlagChargesOverruns);
  Launch(driver_);
  queue.block().gate = ipc::kGateHold;
  queue.block().retired = 1;
  queue.PollOverrun();
  EXPECT_EQ(queue.block().drained, 1u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u);
}

TEST_F(DeviceGatesTest, a_burst_whose_end_only_the_device_knows_goes_on_with_the_next_command) {
  XQueue& queue = Make(driver_);
  Report(queue);
  const TimePoint began = fake_now;
  for (uint64_t number = 1; number <= 3; ++number) {
    Launch(driver_);
    EXPECT_EQ(ipc::ReadBursts(queue.block()).began, began);
    fake_now += milliseconds(2);
    queue.block().retired = number;
  }
  queue.RetiredUpTo(3);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 1u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(6));
}

TEST_F(DeviceGatesTest, the_next_burst_begins_when_it_does_although_the_device_reported_the_end_of_the_last) {
  XQueue& queue = Make(driver_);
  Report(queue);
  Launch(driver_);
  fake_now += milliseconds(2);
  queue.block().retired = 1;
  queue.RetiredUpTo(1);
  fake_now += milliseconds(5);
  Launch(driver_);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).began, fake_now);
  fake_now += milliseconds(1);
  queue.block().retired = 2;
  queue.RetiredUpTo(2);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).ended, 2u);
  EXPECT_EQ(ipc::ReadBursts(queue.block()).busy, milliseconds(3));
}

// ---- the caller waits ----

class CallerWaitsTest : public FakeProcess {
 protected:
  FakeDriver driver_{kGatingCallerWaits, kPreemptLevelBlock, true};
};

TEST_F(CallerWaitsTest, a_launch_on_a_full_queue_polls_until_there_is_room) {
  XQueue& queue = Make(driver_);
  LetRun(queue);
  driver_.on_poll = [](FakeHwQueue& driver) { driver.Run(1); };
  Launch(driver_, 50);
  EXPECT_GT(driver_.ran.size(), 30u);
  EXPECT_LE(queue.submitted() - queue.retired(), 17u);
}

TEST_F(CallerWaitsTest, a_queue_that_retires_nothing_for_a_second_lets_its_caller_go) {
  XQueue& queue = Make(driver_);
  LetRun(queue);
  driver_.on_poll = [](FakeHwQueue&) { fake_now += std::chrono::milliseconds(10); };
  const TimePoint start = fake_now;
  Launch(driver_, 3);
  EXPECT_GE(fake_now - start, std::chrono::seconds(1));
  EXPECT_EQ(queue.issued(), 3u);
  const TimePoint released = fake_now;
  Launch(driver_, 3);
  EXPECT_LT(fake_now - released, std::chrono::seconds(1)) << "nothing has retired since";
}

TEST_F(CallerWaitsTest, an_unscheduled_queue_waits_for_nothing) {
  Make(driver_);
  Launch(driver_, 100);
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
}

}  // namespace
}  // namespace xsched::preempt::testing
