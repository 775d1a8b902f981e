// What the patches of docs/integrations say to XSched: the headers that they add, under the shim.
#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "fixture.h"
#include "stream_priority.h"
#include "xsched.cuh"

namespace xsched::cuda {
namespace {

using triton::backend::tensorrt::ForgetStreamPriority;
using triton::backend::tensorrt::SetStreamPriority;
using triton::backend::tensorrt::TensorRTModel;

// A stream's priority in the driver shows its hint: each step above the least urgent stream is one lower.
class Patches : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    least_urgent_ = NewStream();
    ASSERT_EQ(Launch(least_urgent_), CUDA_SUCCESS);
  }
  static int PriorityOf(CUstream stream) {
    int priority = 99;
    EXPECT_EQ(FindDriver()->cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    return priority;
  }
  static bool IsKnown(CUstream stream) {
    HwQueueHandle hw_queue = 0;
    return CudaQueueGet(&hw_queue, stream) == kXSchedSuccess;
  }

  CUstream least_urgent_ = nullptr;
};

TEST_F(Patches, llama_cpp_sets_the_priority_of_a_new_stream_and_of_one_in_use) {
  CUstream stream = NewStream();
  ASSERT_TRUE(ggml_cuda_stream_set_priority(stream, 2));
  EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(PriorityOf(stream), -2);
  ASSERT_TRUE(ggml_cuda_stream_set_priority(stream, 1));
  EXPECT_EQ(PriorityOf(stream), -1);
  EXPECT_EQ(PriorityOf(least_urgent_), 0);
}

TEST_F(Patches, llama_cpp_leaves_nothing_of_a_stream_that_it_destroys) {
  for (int i = 0; i < 2000; ++i) {  // more than a process may have XQueues
    CUstream stream = NewStream();
    ASSERT_TRUE(ggml_cuda_stream_set_priority(stream, 1)) << i;
    ggml_cuda_stream_forget_priority(stream);
    EXPECT_FALSE(IsKnown(stream));
    ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
}

TEST_F(Patches, triton_gives_streams_the_priority_of_their_model) {
  CUstream urgent = NewStream();
  CUstream least = NewStream();
  ASSERT_EQ(SetStreamPriority(urgent, TensorRTModel::MAX), nullptr);
  ASSERT_EQ(SetStreamPriority(least, TensorRTModel::MIN), nullptr);
  ASSERT_EQ(SetStreamPriority(least_urgent_, TensorRTModel::DEFAULT), nullptr);
  for (CUstream stream : {urgent, least}) EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(PriorityOf(urgent), -2);
  EXPECT_EQ(PriorityOf(least_urgent_), -1);
  EXPECT_EQ(PriorityOf(least), 0);
  ForgetStreamPriority(urgent);
  EXPECT_FALSE(IsKnown(urgent));
}

TEST_F(Patches, triton_needs_no_stream_and_says_why_it_fails) {
  EXPECT_EQ(SetStreamPriority(nullptr, TensorRTModel::MAX), nullptr);
  ForgetStreamPriority(nullptr);
  CUstream stream = NewStream();
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(SetStreamPriority(stream, TensorRTModel::MAX), nullptr) << "its own context is known";
  const std::unique_ptr<TRITONSERVER_Error> error(SetStreamPriority(CU_STREAM_LEGACY, TensorRTModel::MAX));
  ASSERT_NE(error, nullptr) << "no context has this stream here";
  EXPECT_EQ(error->text,
            "XSched does not set a stream's priority: XResult " + std::to_string(kXSchedErrorHardware));
}

}  // namespace
}  // namespace xsched::cuda
