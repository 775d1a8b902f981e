// xsched/opencl/cmdq.h: one command queue where a program makes several. Under the layer.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "xqueues.h"
#include "xsched/opencl/cmdq.h"

namespace {

using xsched::testing::IsScheduled;
using xsched::testing::XQueueOf;

class ChosenQueue : public testing::Test {
 protected:
  void SetUp() override {
    cl_platform_id platform;
    ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    ASSERT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), CL_SUCCESS);
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
  }
  void TearDown() override {
    UnsetOverrideCommandQueue();
    clReleaseContext(context_);
  }

  cl_command_queue Create() {
    cl_int error = -1;
    cl_command_queue queue = clCreateCommandQueue(context_, device_, 0, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    return queue;
  }
  static cl_uint References(cl_command_queue queue) {
    cl_uint count = 0;
    EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr),
              CL_SUCCESS);
    return count;
  }

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
};

TEST_F(ChosenQueue, is_returned_by_every_call_until_it_is_unset) {
  ASSERT_EQ(SetOverrideCommandQueue(3), kXSchedSuccess);
  cl_command_queue found = nullptr;
  EXPECT_EQ(GetOverrideCommandQueue(3, &found), kXSchedErrorNotFound);
  cl_command_queue first = Create();
  EXPECT_EQ(Create(), first);
  EXPECT_EQ(GetOverrideCommandQueue(3, &found), kXSchedSuccess);
  EXPECT_EQ(found, first);
  EXPECT_EQ(References(first), 3u) << "two of the program's, and one of XSched's";

  ASSERT_EQ(SetOverrideCommandQueue(4), kXSchedSuccess);
  cl_command_queue other = Create();
  EXPECT_NE(other, first);
  ASSERT_EQ(UnsetOverrideCommandQueue(), kXSchedSuccess);
  cl_command_queue plain = Create();
  EXPECT_NE(plain, first);
  EXPECT_NE(plain, other);
  EXPECT_EQ(References(plain), 1u);

  for (cl_command_queue queue : {first, first, other, plain})
    EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
  EXPECT_EQ(DeleteOverrideCommandQueue(3), kXSchedSuccess);
  EXPECT_EQ(DeleteOverrideCommandQueue(3), kXSchedErrorNotFound);
  EXPECT_EQ(DeleteOverrideCommandQueue(4), kXSchedSuccess);
}

TEST_F(ChosenQueue, is_scheduled_again_when_it_is_used_again_after_the_programs_last_release) {
  ASSERT_EQ(SetOverrideCommandQueue(0), kXSchedSuccess);
  cl_command_queue queue = Create();
  EXPECT_TRUE(IsScheduled(queue));
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
  EXPECT_FALSE(IsScheduled(queue));
  EXPECT_EQ(Create(), queue);
  EXPECT_TRUE(IsScheduled(queue));
  EXPECT_EQ(DeleteOverrideCommandQueue(0), kXSchedSuccess);
  EXPECT_EQ(References(queue), 1u);
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
}

TEST_F(ChosenQueue, is_scheduled_anew_when_it_is_used_again_while_its_former_work_is_behind_a_gate) {
  ASSERT_EQ(SetOverrideCommandQueue(0), kXSchedSuccess);
  cl_command_queue queue = Create();
  const XQueueHandle former = XQueueOf(queue);
  ASSERT_EQ(XQueueSuspend(former, 0), kXSchedSuccess);
  EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
  EXPECT_EQ(Create(), queue);
  EXPECT_NE(XQueueOf(queue), 0u);
  EXPECT_NE(XQueueOf(queue), former) << "that one goes";
  EXPECT_EQ(clFinish(queue), CL_SUCCESS);
  EXPECT_EQ(DeleteOverrideCommandQueue(0), kXSchedSuccess);
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
}

TEST_F(ChosenQueue, is_one_that_a_call_has_made_and_not_one_that_is_only_retained) {
  cl_command_queue queue = Create();
  cl_event awaited = clCreateUserEvent(context_, nullptr);
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 1, &awaited, &event), CL_SUCCESS);
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
  ASSERT_EQ(SetOverrideCommandQueue(5), kXSchedSuccess);
  EXPECT_EQ(clRetainCommandQueue(queue), CL_SUCCESS) << "the command in flight keeps it";
  cl_command_queue found = nullptr;
  EXPECT_EQ(GetOverrideCommandQueue(5, &found), kXSchedErrorNotFound);
  EXPECT_EQ(clSetUserEventStatus(awaited, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  for (cl_event done : {awaited, event}) EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
  EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
}

TEST_F(ChosenQueue, arguments_that_are_none_are_errors) {
  cl_command_queue found = nullptr;
  EXPECT_EQ(SetOverrideCommandQueue(-1), kXSchedErrorInvalidValue);
  EXPECT_EQ(GetOverrideCommandQueue(-1, &found), kXSchedErrorInvalidValue);
  EXPECT_EQ(GetOverrideCommandQueue(0, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(DeleteOverrideCommandQueue(-1), kXSchedErrorNotFound);
}

}  // namespace

int main(int argc, char** argv) {
  // The loader reads it at the first call.
  setenv("OPENCL_LAYERS", XSCHED_TEST_SHIM, 1);
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
