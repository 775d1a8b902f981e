// A held stream, as the program sees it.
#include <chrono>
#include <thread>

#include "fixture.h"
#include "standin.h"

namespace xsched::cuda {
namespace {

using std::chrono::milliseconds;

class HeldQueue : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    ASSERT_EQ(cuMemHostAlloc(&word_, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostGetDevicePointer_v2(&word_on_device_, word_, 0), CUDA_SUCCESS);
    stream_ = NewStream();
    ASSERT_EQ(Write(0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    queue_ = QueueOf(stream_, KeyOf(stream_));
    ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
    // A call for which the driver waits for the held commands would never return.
    ASSERT_EQ(Write(1), CUDA_SUCCESS);
  }
  void TearDown() override {
    XQueueResume(queue_, kQueueResumeFlagNone);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }

  CUresult Write(uint32_t value) const { return cuStreamWriteValue32_v2(stream_, word_on_device_, value, 0); }
  // A kernel of a library that no context has used yet.
  static CUkernel NewKernel() {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_EQ(cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuLibraryGetKernel(&kernel, library, "nop"), CUDA_SUCCESS);
    return kernel;
  }
  static CUresult Run(CUfunction function, CUstream stream) {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }
  uint32_t Word() const { return *static_cast<volatile uint32_t*>(word_); }

  CUstream stream_ = nullptr;
  XQueueHandle queue_ = 0;
  void* word_ = nullptr;
  CUdeviceptr word_on_device_ = 0;
};

TEST_F(HeldQueue, accepts_work_and_runs_it_when_resumed) {
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(Word(), 0u);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1u);
}

TEST_F(HeldQueue, holds_no_other_stream) {
  CUstream other = NewStream();
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 0u);
}

TEST_F(HeldQueue, freeing_memory_does_not_wait_for_it_for_ever) {
  EXPECT_EQ(cuMemFree_v2(memory_), CUDA_SUCCESS);
}

TEST_F(HeldQueue, synchronizing_the_context_does_not_wait_for_it_for_ever) {
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1u);
}

TEST_F(HeldQueue, is_held_again_after_a_call_that_waited_for_everything) {
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(Write(2), CUDA_SUCCESS);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(Word(), 1u);
}

TEST_F(HeldQueue, what_is_launched_while_another_thread_waits_for_everything_runs) {
  CUstream other = NewStream();
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  std::thread waiter([this] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Write(1), CUDA_SUCCESS);
  waiter.join();
}

TEST_F(HeldQueue, making_a_context_does_not_wait_for_it_for_ever) {
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
}

TEST_F(HeldQueue, code_can_be_loaded_meanwhile) {
  CUfunction function = nullptr;
  EXPECT_EQ(cuKernelGetFunction(&function, NewKernel()), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1u);
}

TEST_F(HeldQueue, code_can_be_loaded_into_a_second_context) {
  CUkernel kernel = NewKernel();
  CUfunction function = nullptr;
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(Write(2), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

TEST_F(HeldQueue, stays_held_while_code_that_is_loaded_is_asked_for) {
  CUkernel kernel = NewKernel();
  CUfunction function = nullptr;
  ASSERT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  ASSERT_EQ(Write(2), CUDA_SUCCESS);
  // The device may miss it if a gate opens for only a moment.
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1u);
}

// ---- after other code was unloaded ----

TEST_F(HeldQueue, stays_held_while_code_that_is_still_loaded_is_launched) {
  CUmodule module = nullptr;
  CUmodule other = nullptr;
  CUfunction function = nullptr;
  CUkernel kernel = NewKernel();
  CUstream stream = NewStream();
  ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleLoadData(&other, "any"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "nop"), CUDA_SUCCESS);
  ASSERT_EQ(Run(function, stream), CUDA_SUCCESS);
  ASSERT_EQ(Run(reinterpret_cast<CUfunction>(kernel), stream), CUDA_SUCCESS);
  CUlibrary library = nullptr;
  ASSERT_EQ(cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleUnload(other), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  ASSERT_EQ(Write(2), CUDA_SUCCESS);
  // Long enough for the device to see a gate that is open meanwhile.
  standin_slow("cuLaunchKernel", 2'000'000);
  EXPECT_EQ(Run(function, stream), CUDA_SUCCESS);
  EXPECT_EQ(Run(reinterpret_cast<CUfunction>(kernel), stream), CUDA_SUCCESS);
  standin_slow("cuLaunchKernel", 0);
  EXPECT_EQ(Word(), 1u);
}

TEST_F(HeldQueue, code_whose_handle_was_that_of_unloaded_code_can_be_loaded_meanwhile) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUstream stream = NewStream();
  ASSERT_EQ(cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "nop"), CUDA_SUCCESS);
  ASSERT_EQ(Run(reinterpret_cast<CUfunction>(kernel), stream), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  ASSERT_EQ(NewKernel(), kernel);
  ASSERT_EQ(Write(2), CUDA_SUCCESS);
  EXPECT_EQ(Run(reinterpret_cast<CUfunction>(kernel), stream), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 2u);
}

TEST_F(HeldQueue, can_be_destroyed_and_still_finishes_its_work) {
  ASSERT_EQ(cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1u);
}

}  // namespace
}  // namespace xsched::cuda
