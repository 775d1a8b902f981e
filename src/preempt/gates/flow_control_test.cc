// What all kinds of gating share. Host gates stand for all of them.
#include "preempt/gates/flow_control.h"

#include <gmock/gmock.h>

#include <thread>

#include "preempt/gates/testing/flow_test.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Item = FakeHwQueue::Item;

class FlowControlTest : public FlowTest {
 protected:
  FlowControlTest() : FlowTest(kGatingHostGates) {
    driver.ops.finished = [](void* self) {
      auto& queue = *static_cast<FakeHwQueue*>(self);
      queue.calls.push_back("finished");
      return queue.next == queue.items.size();
    };
    Begin({4, 2});
  }
};

TEST_F(FlowControlTest, a_device_that_has_finished_everything_retires_what_was_issued) {
  Launch(3);
  flow->AskDevice();
  EXPECT_EQ(state.retired(), 0u);
  Run();
  flow->AskDevice();
  EXPECT_EQ(state.retired(), 3u);
}

TEST_F(FlowControlTest, it_is_counted_that_a_device_had_finished_before_the_program_noticed) {
  Launch(3);
  flow->AskDevice();
  EXPECT_EQ(block.found_idle, 0u) << "it is at work";
  Run();
  flow->AskDevice();
  EXPECT_EQ(block.found_idle, 1u);
  flow->AskDevice();
  EXPECT_EQ(block.found_idle, 1u) << "that is known";
  Launch();
  Run();
  state.RetiredUpTo(4);
  flow->AskDevice();
  EXPECT_EQ(block.found_idle, 1u) << "the program has noticed it";
}

TEST_F(FlowControlTest, a_device_is_not_asked_while_a_launch_is_under_way) {
  state.CountLaunch();
  flow->AskDevice();
  EXPECT_THAT(driver.calls, IsEmpty());
}

TEST_F(FlowControlTest, a_request_for_progress_puts_one_marker_behind_what_was_issued) {
  flow->RequestProgress();
  EXPECT_EQ(driver.Count(Item::kMarker), 0u) << "it is idle";
  Launch(2);
  flow->RequestProgress();
  flow->RequestProgress();
  EXPECT_EQ(driver.Count(Item::kMarker), 1u);
  EXPECT_EQ(Ticket::Unpack(driver.items.back().value).number, 2u);
  Run();
  EXPECT_TRUE(state.Idle());
}

TEST_F(FlowControlTest, a_marker_that_the_driver_refuses_is_not_awaited) {
  driver.ops.append_marker = [](void*, uint64_t) { return kXSchedErrorHardware; };
  Launch();
  flow->RequestProgress();
  EXPECT_FALSE(state.markers.UnderWay());
  flow->WaitRetired(1);
  EXPECT_THAT(driver.calls, ElementsAre("synchronize"));
  EXPECT_EQ(state.retired(), 1u);
}

TEST_F(FlowControlTest, what_the_driver_cannot_say_now_does_not_count_as_finished) {
  driver.ops.append_marker = nullptr;
  driver.ops.synchronize = [](void*) { return kXSchedErrorNotAllowed; };
  Launch();
  EXPECT_FALSE(flow->WaitRetired(1));
  EXPECT_EQ(state.retired(), 0u);
  driver.ops.synchronize = [](void*) { return kXSchedErrorHardware; };
  EXPECT_TRUE(flow->WaitRetired(1)) << "the device has failed: it will not run any more";
  EXPECT_EQ(state.retired(), 1u);
}

TEST_F(FlowControlTest, a_thread_waits_for_a_command_until_its_marker_is_reached) {
  Launch();
  std::thread waiting([&] { flow->WaitRetired(1); });
  while (!state.markers.UnderWay()) std::this_thread::yield();
  state.MarkerReached(1);
  waiting.join();
  EXPECT_THAT(driver.calls, IsEmpty()) << "the driver was not asked to wait";
  flow->WaitRetired(1);
  EXPECT_EQ(driver.Count(Item::kMarker), 1u) << "it has finished already";
}

TEST_F(FlowControlTest, a_command_may_be_launched_while_fewer_are_in_flight_than_the_config_says) {
  Launch(4);
  EXPECT_TRUE(flow->MayLaunch(4));
  EXPECT_FALSE(flow->MayLaunch(5));
  state.RetiredUpTo(1);
  EXPECT_TRUE(flow->MayLaunch(5));
}

TEST_F(FlowControlTest, a_command_of_a_held_queue_may_leave_host_memory_because_its_launch_stops_it) {
  Hold();
  EXPECT_TRUE(flow->MayLaunch(1));
}

TEST_F(FlowControlTest, a_suspended_queue_may_launch_only_if_it_is_being_destroyed) {
  state.SetSuspended(true);
  EXPECT_FALSE(flow->MayLaunch(1));
  state.SetDestroying(true);
  EXPECT_TRUE(flow->MayLaunch(1));
}

TEST_F(FlowControlTest, the_submission_worker_waits_until_there_is_room) {
  Launch(4);
  std::thread waiting([&] { flow->WaitUntilMayLaunch(5); });
  while (!state.markers.UnderWay()) std::this_thread::yield();
  EXPECT_FALSE(flow->MayLaunch(5));
  state.MarkerReached(4);
  waiting.join();
  EXPECT_TRUE(flow->MayLaunch(5));
}

TEST_F(FlowControlTest, there_is_no_flow_control_for_an_unknown_gating) {
  EXPECT_EQ(FlowControl::Make(static_cast<XGating>(7), state), nullptr);
}

}  // namespace
}  // namespace xsched::preempt::testing
