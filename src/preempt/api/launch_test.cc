#include "preempt/api/launch.h"

#include <gmock/gmock.h>

#include "preempt/api/testing/api_test.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LaunchTest : public ApiTest {
 protected:
  FakeHwQueue gated_driver_{kGatingDeviceGates};
  FakeHwQueue other_gated_driver_{kGatingDeviceGates};
};

TEST_F(LaunchTest, a_launch_that_the_driver_takes_is_under_way_until_it_returns) {
  Make(driver_);
  XQueue* queue = FindXQueue(kPlatformOpenCL, KeyOf(driver_));
  ASSERT_NE(queue, nullptr);
  LaunchScope launch(queue);
  EXPECT_EQ(launch.number(), 1u);
  EXPECT_FALSE(NoLaunchUnderWay(queue));
  launch.Finish(true);
  EXPECT_TRUE(NoLaunchUnderWay(queue));
  EXPECT_EQ(SubmittedNow(queue), 1u);
  EXPECT_FALSE(queue->Idle());
  RetiredUpTo(queue, 1);
  EXPECT_TRUE(queue->Idle());
}

TEST_F(LaunchTest, a_launch_that_is_not_finished_was_refused) {
  Make(driver_);
  XQueue* queue = QueueOf(driver_);
  { const LaunchScope launch(queue); }
  EXPECT_TRUE(NoLaunchUnderWay(queue));
  EXPECT_TRUE(queue->Idle());
}

TEST_F(LaunchTest, a_stream_without_an_xqueue_is_let_through) {
  Register(driver_);
  EXPECT_EQ(FindXQueue(kPlatformOpenCL, KeyOf(driver_)), nullptr);
  LaunchScope launch(nullptr);
  launch.Finish(true);
  EXPECT_EQ(launch.number(), 0u);
}

TEST_F(LaunchTest, a_thread_that_used_a_queue_does_not_find_it_when_it_is_gone) {
  Make(driver_);
  XQueue* const first = FindXQueue(kPlatformOpenCL, KeyOf(driver_));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(FindXQueue(kPlatformOpenCL, KeyOf(driver_)), first);
  DestroyWhenDrained(kPlatformOpenCL, KeyOf(driver_));
  EXPECT_EQ(FindXQueue(kPlatformOpenCL, KeyOf(driver_)), nullptr);
  Make(other_driver_);
  EXPECT_NE(FindXQueue(kPlatformOpenCL, KeyOf(other_driver_)), nullptr);
  Make(driver_);
  XQueue* const again = FindXQueue(kPlatformOpenCL, KeyOf(driver_));
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again, first) << "another slot, so what the thread remembered would be wrong";
  EXPECT_NE(again, FindXQueue(kPlatformOpenCL, KeyOf(other_driver_)));
}

TEST_F(LaunchTest, a_queue_that_a_shim_makes_has_the_best_level_up_to_the_wanted_one_and_is_not_pausable) {
  EXPECT_FALSE(AutoXQueueEnabled()) << "XSCHED_AUTO_XQUEUE is not set";
  FakeHwQueue driver(kGatingDeviceGates, kPreemptLevelDeactivate);
  ASSERT_EQ(AutoXQueueCreate(Register(driver)), kXSchedSuccess);
  XQueue& queue = *QueueOf(driver);
  EXPECT_EQ(queue.level(), kPreemptLevelDeactivate);
  EXPECT_FALSE(queue.state().self_gated);
  EXPECT_EQ(AutoXQueueCreate(0), kXSchedErrorNotFound);
  DestroyWhenDrained(kPlatformOpenCL, KeyOf(driver));
}

TEST_F(LaunchTest, a_queue_that_the_program_releases_goes_with_its_hardware_queue) {
  Make(driver_);
  DestroyWhenDrained(kPlatformOpenCL, KeyOf(driver_));
  EXPECT_EQ(HwQueueFind(kPlatformOpenCL, KeyOf(driver_)), 0u);
  EXPECT_THAT(driver_.calls, ElementsAre("destroy"));
  Register(other_driver_);
  DestroyWhenDrained(kPlatformOpenCL, KeyOf(other_driver_));
  EXPECT_THAT(other_driver_.calls, ElementsAre("destroy")) << "it has no XQueue";
  DestroyWhenDrained(kPlatformOpenCL, KeyOf(other_driver_));
}

TEST_F(LaunchTest, barriers_and_lifted_suspensions_last_as_long_as_their_scopes) {
  const ProcessState& state = ThisProcess().state;
  {
    const Barrier outer;
    { const Barrier inner; }
    EXPECT_TRUE(state.forced_open());
    const SuspensionLift lift;
    EXPECT_TRUE(state.suspensions_lifted());
  }
  EXPECT_FALSE(state.forced_open());
  EXPECT_FALSE(state.suspensions_lifted());
}

TEST_F(LaunchTest, a_wait_for_another_queue_is_told_to_the_scheduler) {
  Make(driver_);
  Make(other_driver_);
  Launch(other_driver_);
  XQueue* waiter = QueueOf(driver_);
  XQueue* owner = QueueOf(other_driver_);
  std::vector<ipc::Wait> waits;
  const auto read = [&] {
    waits.clear();
    ipc::ForEachWait(ThisProcess().memory.segment(), waiter->index(),
                     [&](const ipc::Wait& wait) { waits.push_back(wait); });
  };
  AddDependency(waiter, waiter, 1);
  read();
  EXPECT_THAT(waits, IsEmpty()) << "a queue runs in order by itself";
  AddDependency(waiter, owner, 1);
  read();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].queue, owner->index());
  EXPECT_EQ(waits[0].until, 1u);
}

TEST_F(LaunchTest, a_queue_is_tracked_and_may_be_held_as_its_scheduler_says) {
  Make(driver_);
  XQueue* queue = QueueOf(driver_);
  EXPECT_FALSE(TracksDependencies(queue));
  queue->block().flags = ipc::kFlagGated;
  EXPECT_TRUE(TracksDependencies(queue));
  EXPECT_FALSE(AnyMayBeHeld()) << "there is no scheduler";
  ThisProcess().state.SetScheduled(true);
  EXPECT_TRUE(AnyMayBeHeld());
  ThisProcess().state.SetScheduled(false);
}

// They may be on different devices.
TEST_F(LaunchTest, a_wait_is_tracked_if_other_queues_are_scheduled_against_either_of_the_two) {
  Make(driver_);
  Make(other_driver_);
  XQueue* waiter = QueueOf(driver_);
  XQueue* owner = QueueOf(other_driver_);
  ThisProcess().state.SetScheduled(true);
  EXPECT_FALSE(TracksDependency(waiter, owner));
  EXPECT_FALSE(AnyTracksDependencies());
  owner->block().flags = ipc::kFlagTracked;
  EXPECT_TRUE(TracksDependency(waiter, owner));
  EXPECT_TRUE(TracksDependency(owner, waiter));
  EXPECT_FALSE(TracksDependency(owner, owner)) << "a queue runs in order by itself";
  EXPECT_TRUE(AnyTracksDependencies());
  ThisProcess().state.SetScheduled(false);
  EXPECT_FALSE(AnyTracksDependencies()) << "there is no scheduler";
}

TEST_F(LaunchTest, queues_of_different_priorities_are_of_several_classes) {
  Make(gated_driver_);
  Make(other_gated_driver_);
  EXPECT_FALSE(OfSeveralClasses({}));
  sched::Hints hints = QueueOf(gated_driver_)->hints();
  ++hints.priority;
  QueueOf(gated_driver_)->SetHints(hints);
  EXPECT_TRUE(OfSeveralClasses({}));
  EXPECT_FALSE(OfSeveralClasses({.context = 77})) << "there are none";
}

}  // namespace
}  // namespace xsched::preempt::testing
