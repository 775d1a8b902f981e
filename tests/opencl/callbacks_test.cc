// What the program's callbacks do, if the driver calls them on a thread that is inside of a call.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "fake_driver.h"
#include "xqueues.h"

namespace xsched::testing {
namespace {

const cl_icd_dispatch& cl() { return FakeDriver::UnderTheShim(); }

class Callbacks : public ::testing::Test {
 protected:
  static cl_command_queue NewQueue() { return cl().clCreateCommandQueue(nullptr, nullptr, 0, nullptr); }
  static cl_event Launch(cl_command_queue queue) {
    cl_event event = nullptr;
    EXPECT_EQ(cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), CL_SUCCESS);
    return event;
  }
  // A command whose callback does that.
  cl_event Launch(cl_command_queue queue, std::function<void()> callback) {
    callback_ = std::move(callback);
    cl_event event = Launch(queue);
    const auto call = [](cl_event, cl_int, void* self) {
      CallBack(self);
      static_cast<Callbacks*>(self)->called_.store(true);
    };
    EXPECT_EQ(cl().clSetEventCallback(event, CL_COMPLETE, call, this), CL_SUCCESS);
    return event;
  }
  static void CallBack(void* self) { static_cast<Callbacks*>(self)->callback_(); }
  void AwaitCallback() const {
    while (!called_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  cl_command_queue queue_ = NewQueue();
  std::function<void()> callback_;
  std::atomic<bool> called_{false};
};

TEST_F(Callbacks, a_queue_that_is_released_in_a_callback_is_not_scheduled_any_more) {
  cl_event event = Launch(queue_, [&] { cl().clReleaseCommandQueue(queue_); });
  ASSERT_NE(XQueueOf(queue_), 0u);
  cl().clWaitForEvents(1, &event);
  EXPECT_EQ(XQueueOf(queue_), 0u);
}

TEST_F(Callbacks, a_queue_that_is_retained_in_a_callback_outlives_the_programs_first_release) {
  cl_event event = Launch(queue_, [&] { cl().clRetainCommandQueue(queue_); });
  cl().clWaitForEvents(1, &event);
  cl().clReleaseCommandQueue(queue_);
  EXPECT_NE(XQueueOf(queue_), 0u);
}

TEST_F(Callbacks, what_is_launched_in_a_callback_is_counted) {
  cl_event event = Launch(queue_, [&] { Launch(queue_); });
  ASSERT_EQ(Launched(queue_), 1);
  cl().clWaitForEvents(1, &event);
  EXPECT_EQ(Launched(queue_), 2);
}

TEST_F(Callbacks, a_queue_that_is_made_in_a_callback_is_scheduled) {
  cl_command_queue made = nullptr;
  Launch(queue_, [&] { made = NewQueue(); });
  cl().clFinish(queue_);
  EXPECT_NE(XQueueOf(made), 0u);
}

TEST_F(Callbacks, an_event_that_is_released_in_a_callback_is_not_touched_after_the_wait_for_it) {
  cl_event event = nullptr;
  event = Launch(queue_, [&] { cl().clReleaseEvent(event); });
  cl().clWaitForEvents(1, &event);
  EXPECT_EQ(FakeDriver::QuestionsAboutReleasedEvents(), 0);
  EXPECT_EQ(StateOf(queue_), kQueueStateIdle) << "the wait shows that it has finished";
}

TEST_F(Callbacks, what_is_launched_when_a_memory_object_ends_is_counted) {
  callback_ = [&] { Launch(queue_); };
  const auto call = [](cl_mem, void* self) { CallBack(self); };
  EXPECT_EQ(cl().clSetMemObjectDestructorCallback(nullptr, call, this), CL_SUCCESS);
  cl().clFinish(queue_);
  EXPECT_EQ(Launched(queue_), 1);
}

TEST_F(Callbacks, what_is_launched_when_shared_memory_is_freed_is_counted) {
  using FreeSvm = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, void**,
                                       void(CL_CALLBACK*)(cl_command_queue, cl_uint, void**, void*), void*,
                                       cl_uint, const cl_event*, cl_event*);
  static void* memory = &memory;
  callback_ = [&] { Launch(queue_); };
  const auto call = [](cl_command_queue, cl_uint count, void** freed, void* self) {
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(freed, &memory);
    CallBack(self);
  };
  const auto free = reinterpret_cast<FreeSvm>(cl().clEnqueueSVMFree);
  EXPECT_EQ(free(queue_, 1, &memory, call, this, 0, nullptr, nullptr), CL_SUCCESS);
  cl().clFinish(queue_);
  EXPECT_EQ(Launched(queue_), 2);
}

// The thread may have locks that the callback needs, or that the opening thread must not wait for.
TEST_F(Callbacks, the_thread_that_opens_a_gate_runs_no_callback) {
  ASSERT_EQ(XQueueSuspend(XQueueOf(queue_), 0), kXSchedSuccess);
  std::thread::id ran_on;
  cl_event event = Launch(queue_, [&] {
    ran_on = std::this_thread::get_id();
    cl().clReleaseEvent(Launch(queue_));
  });
  ASSERT_EQ(XQueueResume(XQueueOf(queue_), 0), kXSchedSuccess);
  AwaitCallback();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(Launched(queue_), 2);
  while (event->references != 1) std::this_thread::yield();  // kept for the callback alone
}

TEST_F(Callbacks, an_event_that_has_happened_already_calls_back_at_once) {
  cl_event event = Launch(queue_);
  cl().clFinish(queue_);
  int status = -1;
  const auto call = [](cl_event, cl_int what, void* out) { *static_cast<int*>(out) = what; };
  EXPECT_EQ(cl().clSetEventCallback(event, CL_COMPLETE, call, &status), CL_SUCCESS);
  EXPECT_EQ(status, CL_COMPLETE);
}

}  // namespace
}  // namespace xsched::testing

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
