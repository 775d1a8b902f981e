// The thread that calls drivers, without the thread: a test does its rounds.
#include "preempt/scheduling/driver_caller.h"

#include <errno.h>
#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Item = FakeHwQueue::Item;

int threads_started = 0;
bool no_thread = false;

int StartThread(const char*, void* (*)(void*), void*) {
  if (no_thread) return EAGAIN;
  ++threads_started;
  return 0;
}

class DriverCallerTest : public FakeProcess {
 protected:
  DriverCallerTest() {
    threads_started = 0;
    no_thread = false;
    for (FakeDriver* driver : {&driver_, &other_driver_}) {
      driver->ops.note_urgency = [](void*, int) {};
      driver->ops.apply_urgency = [](void* self) {
        static_cast<FakeHwQueue*>(self)->calls.push_back("apply");
        return kXSchedSuccess;
      };
    }
  }

  FakeDriver driver_{kGatingHostGates};
  FakeDriver other_driver_{kGatingHostGates};
  DriverCaller caller_{table, urgencies, state, &StartThread};
};

TEST_F(DriverCallerTest, the_first_request_starts_the_thread) {
  XQueue& queue = Make(driver_);
  XQueue& other = Make(other_driver_);
  EXPECT_EQ(threads_started, 0);
  EXPECT_TRUE(caller_.Request(queue.index(), kProgress));
  EXPECT_TRUE(caller_.Request(other.index(), kProgress));
  EXPECT_EQ(threads_started, 1);
}

TEST_F(DriverCallerTest, a_round_does_what_was_requested_and_the_next_one_does_not_do_it_again) {
  XQueue& queue = Make(driver_);
  XQueue& other = Make(other_driver_);
  Launch(driver_);
  Launch(other_driver_);
  caller_.Request(queue.index(), kProgress);
  caller_.Request(queue.index(), kProgress);
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u) << "the requesting thread calls no driver";
  EXPECT_TRUE(caller_.DoRequested());
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  Run(driver_);
  Launch(driver_);
  EXPECT_TRUE(caller_.DoRequested());
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  EXPECT_EQ(other_driver_.Count(Item::kMarker), 0u) << "nobody asked for " << other.index();
}

TEST_F(DriverCallerTest, a_request_without_a_thread_is_refused_and_forgotten) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  no_thread = true;
  EXPECT_FALSE(caller_.Request(queue.index(), kProgress));
  caller_.DoRequested();
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
  no_thread = false;
  EXPECT_TRUE(caller_.Request(queue.index(), kProgress));
  EXPECT_EQ(threads_started, 1);
}

TEST_F(DriverCallerTest, a_queue_whose_last_user_may_call_no_driver_ends_in_a_round) {
  XQueue& queue = Make(driver_);
  const Ref<HwQueue> hwq = hw_queues.Get(queue.hwq().handle);
  {
    const NoDriverCalls here;
    table.Destroy(queue.handle());
  }
  ASSERT_THAT(requests, ElementsAre(Requested{queue.index(), kFinish}));
  caller_.Request(queue.index(), kFinish);
  EXPECT_EQ(hwq->xqueue, &queue);
  caller_.DoRequested();
  EXPECT_EQ(hwq->xqueue, nullptr);
}

TEST_F(DriverCallerTest, what_cannot_be_done_now_is_done_in_a_later_round) {
  Make(driver_);
  XQueue& queue = Make(other_driver_);
  SetPriority(queue, 3);
  Launch(driver_, 700);
  const uint64_t number = driver_.queue->LaunchBegin();  // the stream may be full
  caller_.Request(queue.index(), kUrgency);
  EXPECT_FALSE(caller_.DoRequested());
  EXPECT_FALSE(caller_.DoRequested());
  EXPECT_THAT(other_driver_.calls, IsEmpty());
  driver_.queue->LaunchEnd(number, true);
  EXPECT_TRUE(caller_.DoRequested());
  EXPECT_THAT(other_driver_.calls, ElementsAre("apply"));
}

TEST_F(DriverCallerTest, requests_for_a_queue_that_was_destroyed_are_dropped) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  table.Destroy(queue.handle());
  EXPECT_TRUE(caller_.DoRequested());
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
}

TEST_F(DriverCallerTest, no_driver_is_called_while_the_process_ends) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  const Ref<HwQueue> hwq = hw_queues.Get(queue.hwq().handle);
  {
    const NoDriverCalls here;
    table.Destroy(queue.handle());
  }
  caller_.Request(queue.index(), kFinish);
  state.ShutDown();
  EXPECT_TRUE(caller_.DoRequested());
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
  EXPECT_EQ(hwq->xqueue, &queue) << "the driver ends with the process";
  table.Finish(queue.index());
}

TEST_F(DriverCallerTest, a_thread_waits_for_its_requests_and_no_longer_than_it_wants) {
  XQueue& queue = Make(driver_);
  const TimePoint never = MonotonicClock::now() + std::chrono::hours(1);
  caller_.AwaitUntil(never);  // there is no thread, so nothing is requested
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  caller_.AwaitUntil(TimePoint{});
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
  std::thread caller([&] { caller_.DoRequested(); });
  caller_.AwaitUntil(never);
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  caller.join();
}

TEST_F(DriverCallerTest, a_forked_child_has_no_requests_and_starts_its_own_thread) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  caller_.ResetAfterFork();
  caller_.DoRequested();
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
  caller_.Request(queue.index(), kProgress);
  EXPECT_EQ(threads_started, 2);
}

}  // namespace
}  // namespace xsched::preempt::testing
