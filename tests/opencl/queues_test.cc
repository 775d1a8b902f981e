// From which call on a queue is scheduled, and until which.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "fake_driver.h"
#include "xqueues.h"

namespace xsched::testing {
namespace {

const cl_icd_dispatch& cl() { return FakeDriver::UnderTheShim(); }

// Its work in flight keeps a queue, and its event says which one that is.
TEST(Queues, a_queue_that_is_retained_after_its_last_release_is_scheduled_again) {
  cl_command_queue queue = cl().clCreateCommandQueue(nullptr, nullptr, 0, nullptr);
  cl_event awaited = cl().clCreateUserEvent(nullptr, nullptr);
  cl_event event = nullptr;
  EXPECT_EQ(cl().clEnqueueTask(queue, nullptr, 1, &awaited, &event), CL_SUCCESS);
  cl().clReleaseCommandQueue(queue);
  cl_command_queue found = nullptr;
  EXPECT_EQ(
      cl().clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof found, static_cast<void*>(&found), nullptr),
      CL_SUCCESS);
  ASSERT_EQ(found, queue);
  EXPECT_EQ(cl().clRetainCommandQueue(found), CL_SUCCESS);
  EXPECT_TRUE(IsScheduled(found));
  cl().clSetUserEventStatus(awaited, CL_COMPLETE);
  EXPECT_EQ(cl().clFinish(found), CL_SUCCESS);
  EXPECT_TRUE(IsScheduled(found));
  cl().clReleaseCommandQueue(found);
  EXPECT_FALSE(IsScheduled(found));
}

}  // namespace
}  // namespace xsched::testing

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
