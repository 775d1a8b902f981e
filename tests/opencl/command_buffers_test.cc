// Command buffers (cl_khr_command_buffer) on a real driver. In one process, under the layer.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "xqueues.h"

namespace {

using xsched::testing::Launched;

class CommandBuffers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(clGetPlatformIDs(1, &platform_, nullptr), CL_SUCCESS);
    ASSERT_EQ(clGetDeviceIDs(platform_, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), CL_SUCCESS);
    if (!LookUp("clCreateCommandBufferKHR", &create_)) GTEST_SKIP() << "the driver has no command buffers";
    LookUp("clCommandFillBufferKHR", &fill_);
    LookUp("clFinalizeCommandBufferKHR", &finalize_);
    LookUp("clEnqueueCommandBufferKHR", &enqueue_);
    LookUp("clReleaseCommandBufferKHR", &release_);
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    memory_ = clCreateBuffer(context_, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, nullptr);
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    clReleaseMemObject(memory_);
    clReleaseContext(context_);
  }

  template <typename Function>
  bool LookUp(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform_, name));
    return *function != nullptr;
  }
  cl_command_queue NewQueue() const {
    return clCreateCommandQueueWithProperties(context_, device_, nullptr, nullptr);
  }
  cl_command_buffer_khr Record(cl_command_queue queue) const {
    cl_int error = -1;
    cl_command_buffer_khr commands = create_(1, &queue, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    const cl_int seven = 7;
    cl_sync_point_khr filled = 0;
    EXPECT_EQ(fill_(commands, nullptr, memory_, &seven, sizeof seven, 0, sizeof seven, 0, nullptr, &filled,
                    nullptr),
              CL_SUCCESS);
    EXPECT_EQ(finalize_(commands), CL_SUCCESS);
    return commands;
  }
  void Launch(cl_command_buffer_khr commands) const {
    EXPECT_EQ(enqueue_(0, nullptr, commands, 0, nullptr, nullptr), CL_SUCCESS);
  }

  cl_platform_id platform_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_mem memory_ = nullptr;
  clCreateCommandBufferKHR_fn create_ = nullptr;
  clCommandFillBufferKHR_fn fill_ = nullptr;
  clFinalizeCommandBufferKHR_fn finalize_ = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue_ = nullptr;
  clReleaseCommandBufferKHR_fn release_ = nullptr;
};

TEST_F(CommandBuffers, a_launch_that_names_no_queue_is_counted_on_the_one_that_the_buffer_was_made_for) {
  cl_command_queue first = NewQueue();
  cl_command_queue second = NewQueue();
  cl_command_buffer_khr of_first = Record(first);
  cl_command_buffer_khr of_second = Record(second);
  for (cl_command_buffer_khr commands : {of_first, of_second, of_second}) {
    Launch(commands);
    EXPECT_EQ(clFinish(first), CL_SUCCESS);
    EXPECT_EQ(clFinish(second), CL_SUCCESS);
  }
  EXPECT_EQ(Launched(first), 1);
  EXPECT_EQ(Launched(second), 2);
  for (cl_command_buffer_khr commands : {of_first, of_second}) EXPECT_EQ(release_(commands), CL_SUCCESS);
  for (cl_command_queue queue : {first, second}) EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
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
