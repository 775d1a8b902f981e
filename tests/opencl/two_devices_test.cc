// OpenCL queues of two devices, in one process under the layer, with the local scheduler.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "ipc/control_access.h"
#include "preempt/api/launch.h"
#include "xsched/opencl/hal.h"
#include "xsched/xsched.h"

namespace xsched::opencl {
namespace {

using Clock = std::chrono::steady_clock;

bool WaitUntil(const std::function<bool()>& condition) {
  for (auto begin = Clock::now(); !condition();) {
    if (Clock::now() - begin > std::chrono::seconds(5)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class TwoDevices : public testing::Test {
 protected:
  void SetUp() override {
    cl_platform_id platform;
    ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    ASSERT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices_, nullptr), CL_SUCCESS);
    context_ = clCreateContext(nullptr, 2, devices_, nullptr, nullptr, nullptr);
    ASSERT_NE(context_, nullptr);
  }

  cl_command_queue NewQueue(int device, Priority priority) {
    cl_command_queue queue = clCreateCommandQueue(context_, devices_[device], 0, nullptr);
    HwQueueHandle hwq = 0;
    XQueueHandle xqueue = 0;
    EXPECT_EQ(OclQueueGet(&hwq, queue), kXSchedSuccess);
    EXPECT_EQ(XQueueGet(&xqueue, hwq), kXSchedSuccess);
    EXPECT_EQ(XHintPriority(xqueue, priority), kXSchedSuccess);
    queues_.push_back(queue);
    return queue;
  }
  static preempt::XQueue& XQueueOf(cl_command_queue queue) {
    return *preempt::FindXQueue(kPlatformOpenCL, reinterpret_cast<uint64_t>(queue));
  }
  // The queues that the scheduler is told `waiter` waits for.
  static std::vector<uint32_t> AwaitedBy(const preempt::XQueue& waiter) {
    std::vector<uint32_t> awaited;
    const auto* blocks = reinterpret_cast<const char*>(&waiter.block() - waiter.index());
    const auto* segment = reinterpret_cast<const ipc::Segment*>(blocks - offsetof(ipc::Segment, blocks));
    ipc::ForEachWait(*segment, waiter.index(), [&](const ipc::Wait& wait) { awaited.push_back(wait.queue); });
    return awaited;
  }
  // An event of a command of `queue` that waits for `before`.
  static cl_event Enqueue(cl_command_queue queue, cl_event before) {
    cl_event event = nullptr;
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 1, &before, &event), CL_SUCCESS);
    return event;
  }

  cl_device_id devices_[2]{};
  cl_context context_{};
  std::vector<cl_command_queue> queues_;
};

// The awaited queue may be held, and then it inherits the waiter's right to run.
TEST_F(TwoDevices, a_wait_is_reported_also_if_only_the_awaited_queue_has_rivals) {
  cl_event start = clCreateUserEvent(context_, nullptr);
  cl_command_queue low = NewQueue(0, 0);
  cl_command_queue high = NewQueue(0, 9);
  cl_command_queue alone = NewQueue(1, 0);
  std::vector<cl_event> events{start, Enqueue(high, start), Enqueue(low, start)};
  ASSERT_TRUE(WaitUntil([&] { return preempt::TracksDependencies(&XQueueOf(low)); }));
  ASSERT_FALSE(preempt::TracksDependencies(&XQueueOf(alone)));
  events.push_back(Enqueue(alone, events[2]));
  EXPECT_EQ(AwaitedBy(XQueueOf(alone)), std::vector<uint32_t>{XQueueOf(low).index()});
  clSetUserEventStatus(start, CL_COMPLETE);
  for (cl_command_queue queue : queues_) EXPECT_EQ(clFinish(queue), CL_SUCCESS);
  for (cl_event event : events) clReleaseEvent(event);
  for (cl_command_queue queue : queues_) clReleaseCommandQueue(queue);
}

}  // namespace
}  // namespace xsched::opencl

int main(int argc, char** argv) {
  // PoCL and the loader read them at the first call.
  setenv("POCL_DEVICES", "pthread pthread", 1);
  setenv("OPENCL_LAYERS", XSCHED_TEST_SHIM, 1);
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "LCL", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
