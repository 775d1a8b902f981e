#include "preempt/queue/submit_worker.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

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

TEST_F(SubmitWorkerTest, a_held_queue_launches_when_it_may_run) {
  XQueue& queue = Make(driver_);
  Hold(queue);
  const Ref<HwCommand> command = Command(1);
  queue.worker().Submit(queue, command, false);
  EXPECT_THAT(launched(), IsEmpty());
  LetRun(queue);
  queue.Attend(IfBusy::kWait);
  queue.worker().WaitLaunched(*command);
  EXPECT_THAT(launched(), ElementsAre(1));
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
