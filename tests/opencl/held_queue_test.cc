// A held OpenCL queue, as the program sees it. In one process, under the layer, with XQueue handles of the
// program.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "xsched/opencl/hal.h"
#include "xsched/xsched.h"

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kCount = 1024;

class HeldQueue : public testing::TestWithParam<cl_command_queue_properties> {
 protected:
  void SetUp() override {
    cl_platform_id platform;
    ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    ASSERT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), CL_SUCCESS);
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    queue_ = clCreateCommandQueue(context_, device_, GetParam(), nullptr);
    const char* source = "__kernel void add(__global int* data) { data[get_global_id(0)] += 1; }";
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, nullptr);
    ASSERT_EQ(clBuildProgram(program_, 1, &device_, "", nullptr, nullptr), CL_SUCCESS);
    kernel_ = clCreateKernel(program_, "add", nullptr);
    std::vector<int> zeros(kCount, 0);
    buffer_ = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kCount * sizeof(int),
                             zeros.data(), nullptr);
    clSetKernelArg(kernel_, 0, sizeof buffer_, &buffer_);
    // The shim has registered the queue; this finds its handles.
    HwQueueHandle hwq = 0;
    HwQueueHandle found = 0;
    ASSERT_EQ(OclQueueGet(&found, queue_), kXSchedSuccess);
    ASSERT_EQ(OclQueueCreate(&hwq, queue_), kXSchedSuccess);
    ASSERT_EQ(hwq, found);
    hwq_ = hwq;
    ASSERT_EQ(XQueueGet(&xqueue_, hwq), kXSchedSuccess);
  }
  void TearDown() override {
    if (queue_ != nullptr) clReleaseCommandQueue(queue_);
    clReleaseMemObject(buffer_);
    clReleaseKernel(kernel_);
    clReleaseProgram(program_);
    clReleaseContext(context_);
  }

  cl_event Launch() {
    cl_event event = nullptr;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &kCount, nullptr, 0, nullptr, &event),
              CL_SUCCESS);
    return event;
  }
  static cl_int Status(cl_event event) {
    cl_int status = -1;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status;
  }

  cl_device_id device_{};
  cl_context context_{};
  cl_command_queue queue_{};
  cl_program program_{};
  cl_kernel kernel_{};
  cl_mem buffer_{};
  HwQueueHandle hwq_ = 0;
  XQueueHandle xqueue_ = 0;
};

TEST_P(HeldQueue, accepts_work_without_blocking_its_caller_and_runs_it_when_resumed) {
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  std::vector<cl_event> events;
  auto begin = Clock::now();
  for (int i = 0; i < 200; ++i) events.push_back(Launch());
  EXPECT_LT(Clock::now() - begin, milliseconds(500));
  clFlush(queue_);
  std::this_thread::sleep_for(milliseconds(50));
  for (cl_event event : events)
    EXPECT_GT(Status(event), CL_RUNNING) << "nothing may start while the queue is held";
  ASSERT_EQ(XQueueResume(xqueue_, kQueueResumeFlagNone), kXSchedSuccess);
  ASSERT_EQ(clFinish(queue_), CL_SUCCESS);
  for (cl_event event : events) {
    EXPECT_EQ(Status(event), CL_COMPLETE);
    clReleaseEvent(event);
  }
  std::vector<int> data(kCount);
  clEnqueueReadBuffer(queue_, buffer_, CL_TRUE, 0, kCount * sizeof(int), data.data(), 0, nullptr, nullptr);
  // Kernels of an out-of-order queue may run at the same time and lose each other's additions.
  if (GetParam() == 0) {
    EXPECT_EQ(std::accumulate(data.begin(), data.end(), 0), 200 * static_cast<int>(kCount));
  }
}

TEST_P(HeldQueue, a_blocking_read_waits_until_the_queue_is_resumed) {
  ASSERT_EQ(XQueueSuspend(xqueue_, 0), kXSchedSuccess);
  clReleaseEvent(Launch());
  std::thread resumer([this] {
    std::this_thread::sleep_for(milliseconds(100));
    XQueueResume(xqueue_, 0);
  });
  auto begin = Clock::now();
  int value = 0;
  EXPECT_EQ(clEnqueueReadBuffer(queue_, buffer_, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_GE(Clock::now() - begin, milliseconds(90));
  if (GetParam() == 0) {
    EXPECT_EQ(value, 1);
  }
  resumer.join();
}

TEST_P(HeldQueue, released_while_held_it_still_finishes_its_work_after_resume) {
  ASSERT_EQ(XQueueSuspend(xqueue_, 0), kXSchedSuccess);
  cl_event event = Launch();
  clFlush(queue_);
  ASSERT_EQ(clReleaseCommandQueue(queue_), CL_SUCCESS);
  queue_ = nullptr;
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_GT(Status(event), CL_COMPLETE);
  EXPECT_EQ(XQueueResume(xqueue_, 0), kXSchedSuccess);
  EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  clReleaseEvent(event);
  EXPECT_EQ(XQueueResume(xqueue_, 0), kXSchedErrorNotFound) << "the XQueue goes with the queue";
}

TEST_P(HeldQueue, counts_what_is_launched_and_knows_when_it_is_idle) {
  int64_t before = 0;
  ASSERT_EQ(XQueueProfileHwCommandCount(xqueue_, &before), kXSchedSuccess);
  for (int i = 0; i < 10; ++i) clReleaseEvent(Launch());
  ASSERT_EQ(clFinish(queue_), CL_SUCCESS);
  int64_t after = 0;
  ASSERT_EQ(XQueueProfileHwCommandCount(xqueue_, &after), kXSchedSuccess);
  EXPECT_EQ(after - before, 10);
  XQueueState state = kQueueStateUnknown;
  ASSERT_EQ(XQueueQuery(xqueue_, &state), kXSchedSuccess);
  EXPECT_EQ(state, kQueueStateIdle);
}

TEST_P(HeldQueue, has_level_1_whatever_level_is_asked_for) {
  EXPECT_EQ(XQueueSetPreemptLevel(xqueue_, kPreemptLevelDeactivate), kXSchedSuccess);
  XQueueHandle again = 0;
  EXPECT_EQ(XQueueCreate(&again, hwq_, kPreemptLevelInterrupt, kQueueCreateFlagNone), kXSchedSuccess);
  EXPECT_EQ(again, xqueue_) << "the one that the layer has made";
}

INSTANTIATE_TEST_SUITE_P(Queues, HeldQueue, testing::Values(0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                         [](const auto& tested) { return tested.param == 0 ? "in_order" : "out_of_order"; });

}  // namespace

int main(int argc, char** argv) {
  // The loader reads it at the first call.
  setenv("OPENCL_LAYERS", XSCHED_TEST_SHIM, 1);
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
