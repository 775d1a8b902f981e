#include "preempt/queue/submit_worker.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tests with commands that record their launches.
class SubmitWorkerTest : public FakeProcess {
 protected:
  struct Recorded {
    SubmitWorkerTest* test;
    int name;
  };

  Ref<HwCommand> Command(int name) {
    XHwCommandOps ops{};
    ops.size = sizeof ops;
    ops.launch = [](void* self, HwQueueHandle) {
      const auto* recorded = static_cast<Recorded*>(self);
      const std::scoped_lock lock(recorded->test->mutex_);
      recorded->test->launched_.push_back(recorded->name);
      return recorded->name >= 0 ? kXSchedSuccess : kXSchedErrorHardware;
    };
    ops.destroy = [](void* self) { delete static_cast<Recorded*>(self); };
    HwCommandHandle handle = 0;
    EXPECT_EQ(hw_commands.Register(ops, new Recorded{this, name}, &handle), kXSchedSuccess);
    commands_.push_back(handle);
    return hw_commands.Get(handle);
  }
  void TearDown() override {
    FakeProcess::TearDown();
    for (HwCommandHandle handle : commands_) hw_commands.Remove(handle);
  }
  // Of the worker's thread as well.
  void RingScheduler(uint32_t index) override {
    const std::scoped_lock lock(mutex_);
    FakeProcess::RingScheduler(index);
  }
  std::vector<int> launched() {
    const std::scoped_lock lock(mutex_);
    return launched_;
  }

  FakeDriver driver_{kGatingHostGates};
  std::mutex mutex_;
  std::vector<int> launched_;
  std::vector<HwCommandHandle> commands_;
};

TEST_F(SubmitWorkerTest, commands_are_launched_in_their_order_and_numbered) {
  XQueue& queue = Make(driver_);
  const Ref<HwCommand> first = Command(1);
  const Ref<HwCommand> second = Command(2);
  queue.worker().Submit(queue, first, false);
  queue.worker().Submit(queue, second, false);
  queue.worker().WaitLaunched();
  EXPECT_THAT(launched(), ElementsAre(1, 2));
  EXPECT_EQ(first->number, 1u);
  EXPECT_EQ(second->number, 2u);
  EXPECT_TRUE(queue.worker().Empty());
}

TEST_F(SubmitWorkerTest, a_blocking_submission_returns_when_its_command_is_launched) {
  XQueue& queue = Make(driver_);
  queue.worker().Submit(queue, Command(1), true);
  EXPECT_THAT(launched(), ElementsAre(1));
}

TEST_F(SubmitWorkerTest, a_suspended_queue_launches_nothing_and_what_waits_can_be_dropped) {
  XQueue& queue = Make(driver_, kPreemptLevelBlock, true);
  queue.Suspend(true);
  const Ref<HwCommand> dropped = Command(1);
  queue.worker().Submit(queue, dropped, false);
  EXPECT_EQ(queue.worker().waiting(), 1);
  queue.worker().Drop();
  EXPECT_TRUE(dropped->dropped);
  queue.Suspend(false);
  queue.worker().Submit(queue, Command(2), true);
  EXPECT_THAT(launched(), ElementsAre(2));
}

TEST_F(SubmitWorkerTest, a_held_queue_launches_behind_a_gate_so_that_the_scheduler_sees_what_waits) {
  XQueue& queue = Make(driver_);
  Hold(queue);
  queue.worker().Submit(queue, Command(1), true);
  EXPECT_THAT(launched(), ElementsAre(1));
  EXPECT_TRUE(queue.HasClosedGates());
  EXPECT_EQ(queue.submitted(), 1u);
  EXPECT_THAT(rung, ElementsAre(queue.index()));
  EXPECT_EQ(taken_seen, 1) << "or a server that has stopped would hold it for good";
  LetRun(queue);
  queue.Attend();
  EXPECT_FALSE(queue.HasClosedGates());
}

TEST_F(SubmitWorkerTest, a_held_queue_has_no_more_in_flight_than_its_config_says) {
  XQueue& queue = Make(driver_);
  queue.SetConfig({1, 1});
  Hold(queue);
  queue.worker().Submit(queue, Command(1), true);
  queue.worker().Submit(queue, Command(2), false);
  EXPECT_EQ(queue.worker().waiting(), 1);
  queue.RetiredUpTo(1);
  queue.worker().WaitLaunched();
  EXPECT_THAT(launched(), ElementsAre(1, 2));
}

// The worker waits for the scheduler where the launching threads of such a program do.
class SubmitWorkerWithoutGates : public SubmitWorkerTest {
 protected:
  // Submits a command to a queue that the scheduler holds, and returns when its launch has begun.
  void SubmitHeld(XQueue& queue, const Ref<HwCommand>& command) {
    Hold(queue);
    queue.worker().Submit(queue, command, false);
    while (queue.submitted() == 0) std::this_thread::yield();
  }

  FakeDriver waits_{kGatingCallerWaits};
  FakeDriver polls_{kGatingCallerWaits, kPreemptLevelBlock, true};
};

TEST_F(SubmitWorkerWithoutGates, what_a_held_queue_submits_waits_where_the_scheduler_sees_it) {
  for (FakeDriver* driver : {&waits_, &polls_}) {
    launched_.clear();
    XQueue& queue = Make(*driver);
    const Ref<HwCommand> command = Command(1);
    SubmitHeld(queue, command);
    EXPECT_THAT(launched(), IsEmpty());
    LetRun(queue);
    queue.Attend();
    queue.worker().WaitLaunched(*command);
    EXPECT_THAT(launched(), ElementsAre(1));
    EXPECT_THAT(rung, Contains(queue.index()));
    EXPECT_GT(std::exchange(taken_seen, 0), 0);
  }
}

TEST_F(SubmitWorkerWithoutGates, a_suspension_does_not_wait_for_a_launch_that_the_scheduler_holds) {
  for (FakeDriver* driver : {&waits_, &polls_}) {
    launched_.clear();
    XQueue& queue = Make(*driver);
    const Ref<HwCommand> command = Command(1);
    SubmitHeld(queue, command);
    queue.Suspend(true);
    queue.worker().WaitBetweenLaunches();
    LetRun(queue);
    queue.Attend();
    EXPECT_THAT(launched(), IsEmpty());
    queue.Suspend(false);
    queue.worker().WaitLaunched(*command);
    EXPECT_THAT(launched(), ElementsAre(1));
  }
}

TEST_F(SubmitWorkerWithoutGates, a_queue_that_is_destroyed_launches_what_the_scheduler_holds) {
  for (FakeDriver* driver : {&waits_, &polls_}) {
    launched_.clear();
    XQueue& queue = Make(*driver);
    SubmitHeld(queue, Command(1));
    EXPECT_TRUE(table.Destroy(queue.handle()));
    EXPECT_THAT(launched(), ElementsAre(1));
  }
}

// The device's progress becomes known while the queue is held, and only the scheduler asks for it then.
TEST_F(SubmitWorkerWithoutGates, a_held_queue_that_was_full_launches_when_there_is_room_again) {
  for (FakeDriver* driver : {&waits_, &polls_}) {
    launched_.clear();
    XQueue& queue = Make(*driver);
    queue.SetConfig({1, 1});
    queue.worker().Submit(queue, Command(1), true);
    queue.worker().Submit(queue, Command(2), false);
    Hold(queue);
    queue.Attend();
    queue.RetiredUpTo(1);
    while (queue.submitted() == 1) std::this_thread::yield();
    EXPECT_THAT(launched(), ElementsAre(1)) << "the second is held, and the scheduler knows of it";
    LetRun(queue);
    queue.Attend();
    queue.worker().WaitLaunched();
    EXPECT_THAT(launched(), ElementsAre(1, 2));
  }
}

TEST_F(SubmitWorkerTest, a_command_that_the_driver_refuses_counts_as_finished) {
  XQueue& queue = Make(driver_);
  queue.worker().Submit(queue, Command(-1), true);
  EXPECT_TRUE(queue.Idle());
}

TEST_F(SubmitWorkerTest, commands_that_have_finished_are_given_back) {
  XQueue& queue = Make(driver_);
  const HwCommandHandle handle = Command(1)->handle;
  queue.worker().Submit(queue, hw_commands.Get(handle), true);
  queue.RetiredUpTo(1);
  queue.worker().Stop();
  EXPECT_FALSE(hw_commands.Get(handle));
  EXPECT_TRUE(hw_commands.WasConsumed(handle));
}

}  // namespace
}  // namespace xsched::preempt::testing
