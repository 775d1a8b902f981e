#include "preempt/gates/caller_waits.h"

#include <gmock/gmock.h>

#include <thread>

#include "preempt/gates/testing/flow_test.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Item = FakeHwQueue::Item;

class PolledTest : public FlowTest {
 protected:
  PolledTest() : FlowTest(kGatingCallerWaits, true) { Begin({4, 2}); }
};

TEST_F(PolledTest, an_unscheduled_queue_waits_for_nothing_and_marks_nothing) {
  Launch(100);
  EXPECT_EQ(driver.Count(Item::kMarker), 0u);
}

TEST_F(PolledTest, a_launch_on_a_full_queue_polls_until_there_is_room) {
  LetRun();
  driver.on_poll = [](FakeHwQueue& queue) { queue.Run(1); };
  Launch(50);
  EXPECT_LE(state.submitted() - state.retired(), 5u);
}

TEST_F(PolledTest, a_launch_on_a_held_queue_waits_until_it_may_run) {
  Hold();
  std::thread launching([&] { Launch(); });
  while (state.submitted() == 0) std::this_thread::yield();
  EXPECT_EQ(state.issued(), 0u);
  LetRun();
  // The agent attends to the queue again and again.
  while (state.issued() == 0) state.waiters.NotifyIfAny();
  launching.join();
  EXPECT_EQ(driver.Count(Item::kCommand), 1u);
}

// Two are in flight while their pace is not known.
TEST_F(PolledTest, a_full_queue_that_retires_nothing_for_a_second_lets_a_threshold_of_commands_go) {
  LetRun();
  driver.on_poll = [](FakeHwQueue&) { fake_now += milliseconds(10); };
  Launch(2);
  const TimePoint start = fake_now;
  Launch(4);
  EXPECT_GE(fake_now - start, seconds(1));
  EXPECT_LT(fake_now - start, 2 * seconds(1));
  const TimePoint next = fake_now;
  Launch(1);
  EXPECT_GE(fake_now - next, seconds(1)) << "what is in flight stays bounded";
}

TEST_F(PolledTest, a_full_queue_of_short_commands_lets_its_caller_go_after_80_ms) {
  LetRun();
  driver.on_poll = [](FakeHwQueue& queue) {
    fake_now += milliseconds(1);
    queue.Run(1);
  };
  Launch(20);
  driver.on_poll = [](FakeHwQueue&) { fake_now += milliseconds(1); };
  const TimePoint start = fake_now;
  Launch(4);
  EXPECT_GE(fake_now - start, milliseconds(80));
  EXPECT_LT(fake_now - start, milliseconds(160));
}

TEST_F(PolledTest, a_full_queue_of_long_commands_waits_for_the_next_of_them) {
  LetRun();
  driver.on_poll = [](FakeHwQueue& queue) {
    static int polls = 0;
    fake_now += milliseconds(10);
    if (++polls % 20 == 0) queue.Run(1);
  };
  Launch(30);
  EXPECT_LE(state.submitted() - state.retired(), 3u);
}

TEST_F(PolledTest, a_queue_that_was_suspended_once_is_bounded_from_then_on) {
  Launch(10);
  EXPECT_EQ(driver.Count(Item::kMarker), 0u);
  flow->OnSuspend();
  driver.on_poll = [](FakeHwQueue& queue) { queue.Run(1); };
  Launch(20);
  EXPECT_LE(state.submitted() - state.retired(), 5u);
}

TEST_F(PolledTest, a_request_for_progress_polls_and_asks_the_device_if_no_marker_is_under_way) {
  Launch(3);
  driver.Run();
  flow->RequestProgress();
  EXPECT_EQ(state.retired(), 3u);
}

// As the null stream of HIP, while there are blocking streams.
TEST_F(PolledTest, where_only_the_launching_thread_may_ask_every_command_of_a_tracked_queue_is_marked) {
  static bool only_launcher;
  static int asked;
  only_launcher = true;
  asked = 0;
  driver.ops.only_launcher_asks = [](void*) { return only_launcher; };
  driver.ops.finished = [](void*) { return ++asked > 0; };
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  Launch(3);
  EXPECT_EQ(driver.Count(Item::kMarker), 3u);
  flow->RequestProgress();
  EXPECT_EQ(asked, 0);
  driver.Run();
  flow->RequestProgress();
  EXPECT_TRUE(state.Idle());
  only_launcher = false;
  Launch(1);
  EXPECT_EQ(driver.Count(Item::kMarker), 3u) << "another thread asks";
  flow->RequestProgress();
  EXPECT_EQ(asked, 1);
}

TEST_F(PolledTest, progress_is_marked_once_behind_what_was_launched) {
  Launch(3);
  flow->MarkProgress();
  flow->MarkProgress();
  EXPECT_EQ(driver.Count(Item::kMarker), 1u);
  driver.Run();
  flow->RequestProgress();
  EXPECT_TRUE(state.Idle());
}

TEST_F(PolledTest, what_was_launched_before_a_capture_counts_as_finished_for_the_scheduler_alone) {
  static bool finished;
  finished = false;
  driver.ops.finished = [](void*) { return finished; };
  LetRun();
  Launch(2);
  flow->OnCapture();
  EXPECT_TRUE(state.Idle());
  EXPECT_FALSE(flow->Finished());
  EXPECT_EQ(flow->KnownRetired(), 0u);
  flow->RequestProgress();
  EXPECT_FALSE(flow->Finished());
  finished = true;
  flow->RequestProgress();
  EXPECT_TRUE(flow->Finished());
  EXPECT_EQ(flow->KnownRetired(), 2u);
}

TEST_F(PolledTest, after_a_capture_a_wait_for_what_was_launched_before_it_asks_the_driver) {
  Launch(2);
  flow->OnCapture();
  flow->WaitRetired(2);
  EXPECT_THAT(driver.calls, ::testing::ElementsAre("synchronize"));
  flow->WaitRetired(2);
  EXPECT_THAT(driver.calls, ::testing::ElementsAre("synchronize")) << "it has answered";
}

TEST_F(PolledTest, during_a_capture_a_wait_for_what_was_launched_before_it_fails) {
  driver.ops.synchronize = [](void*) { return kXSchedErrorNotAllowed; };
  Launch(2);
  flow->OnCapture();
  EXPECT_FALSE(flow->WaitRetired(2));
  EXPECT_EQ(flow->KnownRetired(), 0u);
}

// Nothing is known of how long the two took: the next ones wait, as if the queue were new.
TEST_F(PolledTest, a_capture_says_nothing_about_the_pace) {
  LetRun();
  Launch(2);
  fake_now += std::chrono::microseconds(1);
  flow->OnCapture();
  std::thread launching([&] { Launch(3); });
  while (state.submitted() < 5) std::this_thread::yield();
  EXPECT_EQ(state.issued(), 4u);
  state.RetiredUpTo(4);
  launching.join();
}

TEST_F(PolledTest, a_held_queue_tells_once_for_each_question_that_the_device_has_nothing_more_of_it) {
  LetRun();
  Launch(2);
  Hold();
  block.flags |= ipc::kFlagChargesOverruns;
  flow->OnQuery();
  flow->RequestProgress();
  EXPECT_EQ(block.drained, 0u) << "both are on the device";
  EXPECT_TRUE(flow->OverrunIsPolled());
  EXPECT_TRUE(flow->BeforeLaunch(state.CountLaunch(), state.flags())) << "it waits for the end of the hold";
  driver.Run();
  flow->RequestProgress();
  flow->RequestProgress();
  EXPECT_EQ(block.drained, 1u);
  EXPECT_FALSE(flow->OverrunIsPolled());
  flow->OnQuery();
  flow->RequestProgress();
  EXPECT_EQ(block.drained, 2u) << "it was let run and held again before anything was launched";
}

TEST_F(PolledTest, a_scheduler_that_charges_no_overruns_is_not_told_of_them) {
  LetRun();
  Launch(2);
  Hold();
  driver.Run();
  flow->RequestProgress();
  EXPECT_EQ(block.drained, 0u);
  EXPECT_FALSE(flow->OverrunIsPolled());
}

TEST_F(PolledTest, a_stop_is_awaited_by_the_driver) {
  Launch(3);
  flow->WaitStopped(nullptr, nullptr);
  EXPECT_THAT(driver.calls, ::testing::ElementsAre("synchronize"));
  EXPECT_TRUE(state.Idle());
}

// A driver that reports its markers.
class ReportedTest : public FlowTest {
 protected:
  ReportedTest() : FlowTest(kGatingCallerWaits) { Begin({4, 2}); }
};

TEST_F(ReportedTest, a_launch_on_a_full_queue_puts_a_marker_and_waits_for_it) {
  LetRun();
  Launch(4);
  std::thread launching([&] { Launch(); });
  while (!state.markers.UnderWay()) std::this_thread::yield();
  EXPECT_EQ(state.issued(), 4u);
  state.MarkerReached(4);
  launching.join();
  EXPECT_EQ(state.issued(), 5u);
}

// The rival came when more was in flight than the config says: the launch finds its queue held and full.
TEST_F(ReportedTest, a_launch_that_waited_for_a_hold_marks_what_is_in_flight_afterwards) {
  Launch(10);
  Hold();
  std::thread launching([&] { Launch(); });
  while (state.submitted() == 10) std::this_thread::yield();
  EXPECT_FALSE(state.markers.UnderWay()) << "a held queue may be stopped";
  LetRun();
  while (!state.markers.UnderWay()) state.waiters.NotifyIfAny();
  state.MarkerReached(10);
  launching.join();
  EXPECT_EQ(state.issued(), 11u);
}

TEST_F(ReportedTest, a_launch_on_a_queue_that_nobody_may_hold_does_not_wait) {
  Schedule(ipc::kGateRun, ipc::kFlagTracked);
  Launch(100);
  EXPECT_EQ(state.issued(), 100u);
}

}  // namespace
}  // namespace xsched::preempt::testing
