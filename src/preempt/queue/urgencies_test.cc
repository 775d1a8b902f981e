#include "preempt/queue/urgencies.h"

#include <gmock/gmock.h>

#include <string>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;

class UrgenciesTest : public FakeProcess {
 protected:
  UrgenciesTest() {
    for (FakeDriver* driver : {&low_, &high_}) {
      driver->ops.note_urgency = [](void* self, int steps) {
        static_cast<FakeHwQueue*>(self)->calls.push_back("note " + std::to_string(steps));
      };
      driver->ops.apply_urgency = [](void* self) {
        static_cast<FakeHwQueue*>(self)->calls.push_back("apply");
        return kXSchedSuccess;
      };
    }
  }

  FakeDriver low_{kGatingHostGates};
  FakeDriver high_{kGatingHostGates};
};

TEST_F(UrgenciesTest, equal_hints_reach_no_driver) {
  XQueue& queue = Make(low_);
  Make(high_);
  EXPECT_FALSE(urgencies.Request(queue));
  EXPECT_TRUE(urgencies.Apply(queue));
  EXPECT_TRUE(low_.calls.empty());
}

TEST_F(UrgenciesTest, a_driver_gets_the_steps_above_the_least_urgent_queue_once) {
  Make(low_);
  XQueue& queue = Make(high_);
  SetPriority(queue, 3);
  EXPECT_TRUE(urgencies.Request(queue));
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kUrgency}));
  EXPECT_TRUE(urgencies.Apply(queue));
  EXPECT_THAT(high_.calls, ElementsAre("note 3", "apply"));
  EXPECT_FALSE(urgencies.Request(queue)) << "no news";
}

TEST_F(UrgenciesTest, a_driver_with_a_full_queue_gets_them_later) {
  Make(low_);
  XQueue& queue = Make(high_);
  SetPriority(queue, 3);
  Launch(low_, 700);
  const uint64_t number = low_.queue->LaunchBegin();
  EXPECT_FALSE(urgencies.Apply(queue));
  low_.queue->LaunchEnd(number, true);
  EXPECT_TRUE(urgencies.Apply(queue));
}

TEST_F(UrgenciesTest, queues_of_other_devices_make_no_difference) {
  Make(low_);
  XQueue& queue = Make(high_, kPreemptLevelBlock, false, 6);
  SetPriority(queue, 3);
  EXPECT_FALSE(urgencies.Request(queue));
  EXPECT_TRUE(urgencies.Apply(queue));
  EXPECT_TRUE(high_.calls.empty());
}

TEST_F(UrgenciesTest, a_queue_that_drains_or_whose_driver_has_no_priorities_is_not_asked_about) {
  low_.ops.apply_urgency = nullptr;
  XQueue& low = Make(low_);
  XQueue& high = Make(high_);
  SetPriority(high, 3);
  EXPECT_FALSE(urgencies.Request(low));
  high.state().SetDraining(true);
  EXPECT_FALSE(urgencies.Request(high));
  high.state().SetDraining(false);
  EXPECT_TRUE(urgencies.Request(high));
}

TEST_F(UrgenciesTest, a_driver_that_cannot_now_is_asked_again) {
  high_.ops.apply_urgency = [](void* self) {
    static_cast<FakeHwQueue*>(self)->calls.push_back("refuse");
    return kXSchedErrorNotAllowed;
  };
  Make(low_);
  XQueue& queue = Make(high_);
  SetPriority(queue, 3);
  urgencies.Apply(queue);
  EXPECT_TRUE(urgencies.Request(queue));
  urgencies.Apply(queue);
  EXPECT_THAT(high_.calls, ElementsAre("note 3", "refuse", "refuse")) << "what was noted is not noted again";
}

TEST_F(UrgenciesTest, a_slots_next_queue_is_noted_anew) {
  Make(low_);
  XQueue& first = Make(high_);
  const uint32_t index = first.index();
  SetPriority(first, 3);
  urgencies.Apply(first);
  table.Destroy(first.handle());
  high_.calls.clear();
  // Slots are used in turn, so the same one comes back after the others.
  for (int i = 0; i < 1000 && (high_.queue == nullptr || i == 0 || high_.queue->index() != index); ++i) {
    if (i != 0) table.Destroy(high_.queue->handle());
    XQueueHandle handle = 0;
    ASSERT_EQ(table.Create(hw_queues.Get(hw_queues.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&high_))),
                           {}, &handle),
              kXSchedSuccess);
    high_.queue = &table.At(HandleIndex(handle));
  }
  ASSERT_EQ(high_.queue->index(), index);
  SetPriority(*high_.queue, 3);
  urgencies.Apply(*high_.queue);
  EXPECT_THAT(high_.calls, ElementsAre("note 3", "apply"));
}

TEST_F(UrgenciesTest, a_process_that_ends_leaves_the_driver_alone) {
  Make(low_);
  XQueue& queue = Make(high_);
  SetPriority(queue, 3);
  state.ShutDown();
  EXPECT_TRUE(urgencies.Apply(queue));
  EXPECT_TRUE(high_.calls.empty());
}

TEST_F(UrgenciesTest, a_queue_that_comes_or_goes_asks_for_all_where_hints_have_differed) {
  XQueue& low = Make(low_);
  XQueue& high = Make(high_);
  urgencies.QueueChanged(high);
  EXPECT_TRUE(requests.empty()) << "all are equally urgent";
  SetPriority(high, 3);
  urgencies.QueueChanged(high);
  EXPECT_THAT(requests, ElementsAre(Requested{low.index(), kUrgency}, Requested{high.index(), kUrgency}));
}

}  // namespace
}  // namespace xsched::preempt::testing
