// The thread that calls drivers, without the thread: a test does its rounds.
#include "preempt/scheduling/driver_caller.h"

#include <errno.h>
#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
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

  TimePoint Round() { return caller_.DoRequested(fake_now); }

  FakeDriver driver_{kGatingHostGates};
  FakeDriver other_driver_{kGatingHostGates};
  FakeDriver polled_{kGatingCallerWaits, kPreemptLevelBlock, true};
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
  EXPECT_EQ(Round(), kNever);
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  Run(driver_);
  Launch(driver_);
  EXPECT_EQ(Round(), kNever);
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  EXPECT_EQ(other_driver_.Count(Item::kMarker), 0u) << "nobody asked for " << other.index();
}

TEST_F(DriverCallerTest, a_request_without_a_thread_is_refused_and_forgotten) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  no_thread = true;
  EXPECT_FALSE(caller_.Request(queue.index(), kProgress));
  Round();
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
  Round();
  EXPECT_EQ(hwq->xqueue, nullptr);
}

TEST_F(DriverCallerTest, what_cannot_be_done_now_is_done_in_a_later_round) {
  Make(driver_);
  XQueue& queue = Make(other_driver_);
  SetPriority(queue, 3);
  Launch(driver_, 700);
  const uint64_t number = driver_.queue->LaunchBegin();  // the stream may be full
  caller_.Request(queue.index(), kUrgency);
  EXPECT_EQ(Round(), fake_now + milliseconds(5));
  EXPECT_EQ(Round(), fake_now + milliseconds(5));
  EXPECT_THAT(other_driver_.calls, IsEmpty());
  driver_.queue->LaunchEnd(number, true);
  EXPECT_EQ(Round(), kNever);
  EXPECT_THAT(other_driver_.calls, ElementsAre("apply"));
}

// As HIP at level 1: nobody reports the end of the commands that are in flight.
TEST_F(DriverCallerTest,
       a_held_queue_whose_end_others_wait_for_is_polled_until_the_device_has_nothing_of_it) {
  XQueue& queue = Make(polled_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated | ipc::kFlagChargesOverruns);
  Launch(polled_);
  Hold(queue);
  queue.block().flags |= ipc::kFlagChargesOverruns;
  caller_.Request(queue.index(), kProgress);
  EXPECT_EQ(Round(), fake_now + microseconds(50));
  fake_now += milliseconds(16);
  EXPECT_EQ(Round(), fake_now + milliseconds(1)) << "seldom if it takes long";
  EXPECT_EQ(queue.block().drained, 0u);
  caller_.Request(queue.index(), kProgress);
  EXPECT_EQ(Round(), fake_now + microseconds(50)) << "the scheduler has asked anew";
  fake_now += microseconds(50);
  polled_.Run();
  EXPECT_EQ(Round(), kNever);
  EXPECT_EQ(queue.block().drained, 1u);
  EXPECT_THAT(rung, ::testing::Contains(queue.index()));
}

TEST_F(DriverCallerTest, requests_for_a_queue_that_was_destroyed_are_dropped) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  table.Destroy(queue.handle());
  EXPECT_EQ(Round(), kNever);
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
  EXPECT_EQ(Round(), kNever);
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
  std::thread caller([&] { Round(); });
  caller_.AwaitUntil(never);
  EXPECT_EQ(driver_.Count(Item::kMarker), 1u);
  caller.join();
}

TEST_F(DriverCallerTest, a_forked_child_has_no_requests_and_starts_its_own_thread) {
  XQueue& queue = Make(driver_);
  Launch(driver_);
  caller_.Request(queue.index(), kProgress);
  caller_.ResetAfterFork();
  Round();
  EXPECT_EQ(driver_.Count(Item::kMarker), 0u);
  caller_.Request(queue.index(), kProgress);
  EXPECT_EQ(threads_started, 2);
}

}  // namespace
}  // namespace xsched::preempt::testing
