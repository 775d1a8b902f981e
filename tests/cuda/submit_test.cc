// Commands that a program passes to XQueueSubmit. A worker thread of XSched launches them.
#include <chrono>
#include <thread>

#include "fixture.h"
#include "preempt/queue/xqueue.h"

namespace xsched::cuda {
namespace {

class Submit : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&spin_, module, "spin_us"), CUDA_SUCCESS);
    stream_ = NewStream();
    ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
    queue_ = QueueOf(stream_, KeyOf(stream_));
  }

  // A kernel of 1 ms. As in libraries, the current context is restored after the launch.
  void SubmitSpin() {
    const auto launch = [](HwQueueHandle, void* self) {
      const auto& test = *static_cast<Submit*>(self);
      int us = 1000;
      void* arguments[] = {&us};
      CUcontext context = nullptr;
      cuCtxPushCurrent_v2(test.context_);
      CUresult result = cuLaunchKernel(test.spin_, 1, 1, 1, 1, 1, 1, 0, test.stream_, arguments, nullptr);
      cuCtxPopCurrent_v2(&context);
      return result == CUDA_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware;
    };
    HwCommandHandle command = 0;
    ASSERT_EQ(HwCommandCreateCallback(&command, launch, this), kXSchedSuccess);
    ASSERT_EQ(XQueueSubmit(queue_, command), kXSchedSuccess);
  }

  CUfunction spin_ = nullptr;
  CUstream stream_ = nullptr;
  XQueueHandle queue_ = 0;
};

TEST_F(Submit, puts_gates_between_commands_whose_callbacks_leave_no_context_behind) {
  constexpr uint64_t kCommands = 60;
  const preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, KeyOf(stream_));
  // From its first suspension on, the queue has gates.
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  const uint64_t before = queue->submitted();
  for (uint64_t i = 0; i < kCommands; ++i) SubmitSpin();
  while (queue->submitted() < before + kCommands) std::this_thread::yield();
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  EXPECT_LT(queue->retired(), before + kCommands / 2);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(XQueueWaitAll(queue_), kXSchedSuccess);
}

}  // namespace
}  // namespace xsched::cuda
