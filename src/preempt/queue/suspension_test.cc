#include "preempt/queue/suspension.h"

#include <gtest/gtest.h>

#include "base/pci_address.h"
#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

class SuspensionTest : public FakeProcess {
 protected:
  FakeDriver driver_{kGatingHostGates, kPreemptLevelInterrupt};
  FakeDriver other_driver_{kGatingHostGates};
  FakeDriver device_{kGatingDeviceGates, kPreemptLevelInterrupt};
};

TEST_F(SuspensionTest, a_held_queue_of_level_1_keeps_what_was_launched) {
  XQueue& queue = Make(driver_, kPreemptLevelBlock);
  Hold(queue);
  EXPECT_TRUE(queue.ApplyLevels());
  EXPECT_FALSE(driver_.deactivated);
}

TEST_F(SuspensionTest, a_held_queue_is_deactivated_at_level_2_and_interrupted_at_level_3) {
  XQueue& queue = Make(driver_, kPreemptLevelDeactivate);
  Hold(queue);
  queue.ApplyLevels();
  EXPECT_TRUE(driver_.deactivated);
  EXPECT_FALSE(driver_.interrupted);
  queue.SetLevel(kPreemptLevelInterrupt);
  EXPECT_TRUE(driver_.interrupted);
  LetRun(queue);
  EXPECT_TRUE(queue.ApplyLevels());
  EXPECT_FALSE(driver_.deactivated || driver_.interrupted);
}

TEST_F(SuspensionTest, what_the_driver_refuses_to_give_back_is_tried_again) {
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Hold(queue);
  queue.ApplyLevels();
  LetRun(queue);
  driver_.refuses_control = true;
  EXPECT_FALSE(queue.ApplyLevels());
  EXPECT_FALSE(queue.ApplyLevels()) << "it is taken still";
  driver_.refuses_control = false;
  EXPECT_TRUE(queue.ApplyLevels());
  EXPECT_FALSE(driver_.deactivated || driver_.interrupted);
}

TEST_F(SuspensionTest, words_of_a_scheduler_that_has_left_take_nothing) {
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Hold(queue);
  queue.ApplyLevels();
  state.SetScheduled(false);
  EXPECT_TRUE(queue.ApplyLevels());
  EXPECT_FALSE(driver_.deactivated);
}

TEST_F(SuspensionTest, a_call_that_waits_for_everything_finds_nothing_taken) {
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Hold(queue);
  queue.ApplyLevels();
  table.ForceAllOpen(true);
  EXPECT_FALSE(driver_.deactivated || driver_.interrupted);
  table.ForceAllOpen(true);
  table.ForceAllOpen(false);
  EXPECT_FALSE(driver_.deactivated) << "one such call is under way still";
  table.ForceAllOpen(false);
  EXPECT_TRUE(driver_.deactivated);
}

TEST_F(SuspensionTest, a_hard_stop_waits_until_the_process_has_nothing_else_on_the_device) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Make(other_driver_);
  Launch(driver_);
  Launch(other_driver_);
  Hold(queue);
  EXPECT_TRUE(queue.ApplyLevels());
  EXPECT_FALSE(driver_.interrupted);
  EXPECT_EQ(state.hard_stops(), 0);
  other_driver_.queue->RetiredUpTo(1);
  queue.ApplyLevels();
  EXPECT_TRUE(driver_.interrupted);
  EXPECT_EQ(state.hard_stops(), 1);
}

TEST_F(SuspensionTest, another_device_of_the_process_does_not_keep_from_a_hard_stop) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Make(other_driver_, kPreemptLevelBlock, false, 6);
  Launch(driver_);
  Launch(other_driver_);
  Hold(queue);
  queue.ApplyLevels();
  EXPECT_TRUE(driver_.interrupted);
}

TEST_F(SuspensionTest, a_hard_stop_is_of_all_parts_of_a_divided_device) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Make(other_driver_, kPreemptLevelBlock, false, PartOfDevice(5, 2));
  Launch(driver_);
  Launch(other_driver_);
  Hold(queue);
  queue.ApplyLevels();
  EXPECT_FALSE(driver_.interrupted) << "it would stop the other part as well";
  other_driver_.queue->RetiredUpTo(1);
  queue.ApplyLevels();
  EXPECT_TRUE(driver_.interrupted);
  Launch(other_driver_);
  EXPECT_FALSE(driver_.interrupted);
}

TEST_F(SuspensionTest, a_launch_on_another_queue_lifts_a_hard_stop) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Make(other_driver_);
  Launch(driver_);
  Hold(queue);
  queue.ApplyLevels();
  ASSERT_TRUE(driver_.interrupted);
  Launch(other_driver_);
  EXPECT_FALSE(driver_.interrupted);
  EXPECT_EQ(state.hard_stops(), 0);
  EXPECT_EQ(wakes, 1) << "the agent may have been asked something meanwhile";
  EXPECT_EQ(give_back_later, 0);
}

TEST_F(SuspensionTest, a_hard_stop_that_cannot_be_lifted_is_left_to_the_agent) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Make(other_driver_);
  Launch(driver_);
  Hold(queue);
  queue.ApplyLevels();
  driver_.refuses_control = true;
  Launch(other_driver_);
  EXPECT_EQ(give_back_later, 1);
  EXPECT_EQ(state.hard_stops(), 1);
}

// The caller is about to wait for the device.
TEST_F(SuspensionTest, a_hard_stop_that_a_call_lifts_and_the_driver_puts_off_is_left_to_the_agent) {
  driver_.StopsWholeProcess();
  XQueue& queue = Make(driver_, kPreemptLevelInterrupt);
  Launch(driver_);
  queue.Suspend(true);
  ASSERT_TRUE(driver_.interrupted);
  settled = false;
  give_back_later = 0;
  table.ForceAllOpen(true);
  EXPECT_EQ(give_back_later, 1);
  table.ForceAllOpen(false);
  EXPECT_EQ(give_back_later, 2) << "nor did the new stop succeed";
  settled = true;
  ASSERT_TRUE(driver_.interrupted);
  settled = false;
  give_back_later = 0;
  table.LiftSuspensions(true);
  EXPECT_EQ(give_back_later, 1);
  settled = true;
  table.LiftSuspensions(false);
  ASSERT_TRUE(driver_.interrupted);
  settled = false;
  give_back_later = 0;
  table.Destroy(queue.handle());
  EXPECT_EQ(give_back_later, 1);
}

TEST_F(SuspensionTest, a_scheduler_stops_a_queue_with_device_gates_by_its_gates_alone) {
  XQueue& queue = Make(device_, kPreemptLevelInterrupt, true);
  Launch(device_);
  Hold(queue);
  queue.ApplyLevels();
  EXPECT_FALSE(device_.interrupted);
  EXPECT_EQ(queue.block().open, 0);
  queue.Suspend(true);
  EXPECT_TRUE(device_.interrupted) << "the program's own doing";
  EXPECT_EQ(queue.block().pause, 1u);
  table.LiftSuspensions(true);
  EXPECT_FALSE(device_.interrupted);
  EXPECT_EQ(queue.block().pause, 0u);
  EXPECT_EQ(queue.block().open, 0) << "what the scheduler holds stays held";
  table.LiftSuspensions(false);
  EXPECT_EQ(queue.block().pause, 1u);
  state.SetScheduled(false);
  queue.ApplyLevels();
  EXPECT_EQ(queue.block().open, 1);
}

}  // namespace
}  // namespace xsched::preempt::testing
