#include "preempt/queue/xqueue_table.h"
#include "base/handle.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class XQueueTableTest : public FakeProcess {
 protected:
  XResult Create(FakeDriver& driver, XPreemptLevel level = kPreemptLevelBlock) {
    XQueueOptions options;
    options.level = level;
    XQueueHandle handle = 0;
    return table.Create(hw_queues.Get(hw_queues.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver))),
                        options, &handle);
  }

  void CountReferences() {
    driver_.ops.retain = [](void* self) { static_cast<FakeHwQueue*>(self)->calls.push_back("retain"); };
    driver_.ops.release = [](void* self) { static_cast<FakeHwQueue*>(self)->calls.push_back("release"); };
  }
  void FinishIfDrained(const XQueue& queue) {
    if (XQueuePin pin = table.Pin(queue.handle())) table.FinishIfDrained(*pin);
  }

  FakeDriver driver_{kGatingHostGates};
  FakeDriver other_driver_{kGatingHostGates};
};

TEST_F(XQueueTableTest, a_queue_is_found_by_its_handle_and_by_the_drivers) {
  XQueue& queue = Make(driver_);
  EXPECT_EQ(table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), &queue);
  EXPECT_EQ(&*table.Pin(queue.handle()), &queue);
  EXPECT_EQ(table.HandleAt(queue.index()), queue.handle());
  EXPECT_EQ(created, 1);
}

TEST_F(XQueueTableTest, a_hardware_queue_has_one_xqueue_and_no_level_above_its_own) {
  Make(driver_);
  EXPECT_EQ(Create(driver_), kXSchedErrorNotAllowed);
  Register(other_driver_);
  EXPECT_EQ(Create(other_driver_, kPreemptLevelDeactivate), kXSchedErrorNotSupported);
  EXPECT_EQ(Create(other_driver_), kXSchedSuccess);
}

TEST_F(XQueueTableTest, a_handle_of_a_destroyed_queue_finds_nothing_and_its_slot_rests) {
  const XQueueHandle first = Make(driver_).handle();
  EXPECT_TRUE(table.Destroy(first));
  EXPECT_FALSE(table.Destroy(first));
  EXPECT_FALSE(table.Pin(first));
  EXPECT_EQ(destroyed, 1);
  std::set<uint32_t> slots_used;
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(Create(driver_), kXSchedSuccess);
    const XQueue* queue = table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_));
    ASSERT_NE(queue->handle(), first);
    slots_used.insert(queue->index());
    table.Destroy(queue->handle());
  }
  EXPECT_EQ(slots_used.size(), 60u);
  EXPECT_THAT(slots_used, Not(Contains(HandleIndex(first))));
}

TEST_F(XQueueTableTest, a_slot_whose_markers_are_under_way_is_not_used_again) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  queue.flow().MarkProgress();
  const uint32_t index = queue.index();
  table.Destroy(queue.handle());
  std::set<uint32_t> slots_used;
  for (int i = 0; i < 70; ++i) {
    ASSERT_EQ(Create(driver_), kXSchedSuccess);
    const XQueue* again = table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_));
    slots_used.insert(again->index());
    table.Destroy(again->handle());
  }
  EXPECT_THAT(slots_used, Not(Contains(index)));
  Run(driver_);
}

TEST_F(XQueueTableTest, a_process_with_too_many_queues_is_warned_once) {
  std::deque<FakeDriver> drivers;
  for (uint32_t i = 0; i < ipc::kMaxQueues; ++i) Make(drivers.emplace_back(kGatingHostGates));
  Register(driver_);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Create(driver_), kXSchedErrorNotAllowed);
  EXPECT_EQ(Create(driver_), kXSchedErrorNotAllowed);
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1) << warnings;
  for (const FakeDriver& driver : drivers) table.Destroy(driver.queue->handle());
  EXPECT_EQ(Create(driver_), kXSchedSuccess);
  for (FakeDriver& driver : drivers)
    hw_queues.Unregister(hw_queues.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver)));
}

TEST_F(XQueueTableTest, a_pinned_queue_ends_with_its_last_pin) {
  XQueue& queue = Make(driver_);
  const Ref<HwQueue> hwq = hw_queues.Get(queue.hwq().handle);
  {
    XQueuePin pin = table.Pin(queue.handle());
    EXPECT_TRUE(table.Destroy(queue.handle()));
    EXPECT_EQ(hwq->xqueue, &queue);
    EXPECT_FALSE(queue.Held()) << "nothing holds it any more";
  }
  EXPECT_EQ(hwq->xqueue, nullptr);
}

TEST_F(XQueueTableTest, the_end_of_a_queue_is_left_to_the_thread_that_may_call_drivers) {
  XQueue& queue = Make(driver_);
  const Ref<HwQueue> hwq = hw_queues.Get(queue.hwq().handle);
  {
    const NoDriverCalls here;
    table.Destroy(queue.handle());
  }
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kFinish}));
  EXPECT_EQ(hwq->xqueue, &queue);
  table.Finish(queue.index());
  EXPECT_EQ(hwq->xqueue, nullptr);
}

TEST_F(XQueueTableTest, what_is_gated_still_runs_after_the_program_has_let_the_queue_go) {
  CountReferences();
  XQueue& queue = Make(driver_);
  Hold(queue);
  Launch(driver_, 3);
  table.DestroyWhenDrained(&queue);
  EXPECT_THAT(driver_.calls, ElementsAre("retain"));
  EXPECT_NE(queue.handle(), 0u);
  LetRun(queue);
  for (int i = 0; i < 5; ++i) {
    queue.Attend();
    Run(driver_);
  }
  EXPECT_EQ(driver_.ran.size(), 3u);
  {
    XQueuePin pin = table.Pin(queue.handle());
    table.FinishIfDrained(*pin);
  }
  EXPECT_THAT(driver_.calls, ElementsAre("retain", "release", "destroy"));
}

TEST_F(XQueueTableTest, work_in_flight_keeps_a_released_queue_until_it_has_finished) {
  CountReferences();
  XQueue& queue = Make(driver_);
  LetRun(queue);
  Launch(driver_);
  ASSERT_FALSE(queue.HasClosedGates());
  table.DestroyWhenDrained(&queue);
  FinishIfDrained(queue);
  EXPECT_NE(queue.handle(), 0u) << "others are scheduled against it";
  EXPECT_THAT(driver_.calls, ElementsAre("retain"));
  wakes = 0;
  Run(driver_);
  EXPECT_EQ(wakes, 1) << "the agent finishes it";
  FinishIfDrained(queue);
  EXPECT_THAT(driver_.calls, ElementsAre("retain", "release", "destroy"));
}

TEST_F(XQueueTableTest, a_released_queue_that_is_destroyed_before_its_end_leaves_nothing) {
  CountReferences();
  XQueue& queue = Make(driver_);
  LetRun(queue);
  Launch(driver_);
  table.DestroyWhenDrained(&queue);
  ASSERT_TRUE(table.AnyDraining());
  EXPECT_TRUE(table.Destroy(queue.handle()));
  EXPECT_FALSE(table.AnyDraining());
  EXPECT_THAT(driver_.calls, ElementsAre("retain", "release", "destroy"));
}

TEST_F(XQueueTableTest, a_queue_that_is_destroyed_while_it_is_released_does_not_drain) {
  static std::function<void()> on_retain;
  CountReferences();
  driver_.ops.retain = [](void*) { on_retain(); };
  XQueue& queue = Make(driver_);
  LetRun(queue);
  Launch(driver_);
  on_retain = [&] { EXPECT_TRUE(table.Destroy(queue.handle())); };
  table.DestroyWhenDrained(&queue);
  EXPECT_FALSE(table.AnyDraining()) << "or the agent would look for it for ever";
  EXPECT_THAT(driver_.calls, ElementsAre("release", "destroy"));
}

TEST_F(XQueueTableTest, work_whose_end_will_not_be_reported_keeps_no_queue) {
  CountReferences();
  driver_.ops.append_marker = [](void*, uint64_t) { return kXSchedErrorHardware; };
  XQueue& queue = Make(driver_);
  LetRun(queue);
  Launch(driver_);
  table.DestroyWhenDrained(&queue);
  EXPECT_THAT(driver_.calls, ElementsAre("destroy"));
}

TEST_F(XQueueTableTest, a_queue_that_has_gone_unseen_is_not_retained) {
  CountReferences();
  XQueue& queue = Make(driver_);
  Hold(queue);
  Launch(driver_, 3);
  table.Forget(&queue);
  EXPECT_THAT(driver_.calls, ElementsAre("destroy"));
  EXPECT_EQ(table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), nullptr);
}

// The thread that opens them still uses the driver's queue.
TEST_F(XQueueTableTest, a_queue_that_is_released_while_its_gates_open_is_kept_until_they_are_flushed) {
  static std::function<void()> on_flush;
  driver_.ops.flush = [](void*) {
    if (const auto release = std::exchange(on_flush, nullptr)) release();
  };
  CountReferences();
  XQueue& queue = Make(driver_);
  Hold(queue);
  Launch(driver_);
  LetRun(queue);
  on_flush = [&] {
    queue.RetiredUpTo(1);
    table.DestroyWhenDrained(&queue);
    EXPECT_THAT(driver_.calls, ElementsAre("retain"));
  };
  queue.Attend();
  FinishIfDrained(queue);
  EXPECT_THAT(driver_.calls, ElementsAre("retain", "release", "destroy"));
  Run(driver_);
}

TEST_F(XQueueTableTest, a_queue_with_nothing_outstanding_ends_at_once) {
  XQueue& queue = Make(driver_);
  table.DestroyWhenDrained(&queue);
  EXPECT_THAT(driver_.calls, ElementsAre("destroy"));
  EXPECT_EQ(table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), nullptr);
}

TEST_F(XQueueTableTest, a_queue_may_be_held_while_a_scheduler_bounds_it) {
  XQueue& queue = Make(driver_);
  EXPECT_FALSE(table.AnyMayBeHeld());
  LetRun(queue);
  EXPECT_TRUE(table.AnyMayBeHeld());
  state.SetScheduled(false);
  EXPECT_FALSE(table.AnyMayBeHeld());
}

TEST_F(XQueueTableTest, a_forked_child_knows_none_of_its_parents_queues) {
  XQueue& queue = Make(driver_);
  const Ref<HwQueue> hwq = hw_queues.Get(queue.hwq().handle);
  const XQueueHandle handle = queue.handle();
  table.ResetAfterFork();
  EXPECT_FALSE(table.Pin(handle));
  EXPECT_EQ(table.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), nullptr);
  uint32_t next = 0;
  EXPECT_FALSE(table.PinNext(&next));
}

}  // namespace
}  // namespace xsched::preempt::testing
