// Green contexts: streams with a part of the device's multiprocessors, which share the primary context's
// memory.
#include <atomic>
#include <thread>

#include "hal/cuda/green_contexts.h"
#include "scheduled.h"

namespace xsched::cuda {
namespace {

class GreenContext : public ScheduledProgram {
 protected:
  void SetUp() override {
    ScheduledProgram::SetUp();
    // Held because of another context, as because of another process.
    ASSERT_EQ(XHintPriority(QueueOf(high_, KeyOf(high_)), 0), kXSchedSuccess);
    ASSERT_EQ(cuCtxCreate_v2(&other_, 0, 0), CUDA_SUCCESS);
    urgent_ = NewStream(9);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGetDevResource(0, &multiprocessors_, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    ASSERT_EQ(cuDevResourceGenerateDesc(&description_, &multiprocessors_, 1), CUDA_SUCCESS);
    Make();
  }
  void TearDown() override {
    Open();
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    if (green_ != nullptr) {
      EXPECT_EQ(cuGreenCtxDestroy(green_), CUDA_SUCCESS);
    }
    ScheduledProgram::TearDown();
    EXPECT_EQ(cuCtxDestroy_v2(other_), CUDA_SUCCESS);
  }

  void Make() {
    ASSERT_EQ(cuGreenCtxCreate(&green_, description_, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxFromGreenCtx(&green_context_, green_), CUDA_SUCCESS);
    ASSERT_EQ(cuGreenCtxStreamCreate(&stream_, green_, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  }
  // Checks that `held`, which has a command that stores 1, is held while another thread repeats `call`.
  void StaysHeldBeside(CUstream held, const std::function<void()>& call) {
    bool valid = false;
    for (int i = 0; i < 10 && !valid; ++i) {
      *done_.host = 0;
      Hold(held, urgent_);
      const auto begin = Clock::now();
      ASSERT_EQ(Store(held, 1), CUDA_SUCCESS);
      std::atomic<bool> stop{false};
      std::thread caller([&] {
        while (!stop.load()) call();
      });
      std::this_thread::sleep_for(milliseconds(20));
      const bool runs = *done_.host != 0;
      valid = IsHeld(held) && Clock::now() - begin < milliseconds(60);
      Open();
      stop.store(true);
      caller.join();
      EXPECT_FALSE(valid && runs);
      EXPECT_EQ(cuStreamSynchronize(held), CUDA_SUCCESS);
      EXPECT_EQ(*done_.host, 1u);
    }
    EXPECT_TRUE(valid);
  }

  CUdevResource multiprocessors_{};
  CUdevResourceDesc description_ = nullptr;
  CUgreenCtx green_ = nullptr;
  CUcontext green_context_ = nullptr;
  CUstream stream_ = nullptr;  // of the green context
  CUcontext other_ = nullptr;
  CUstream urgent_ = nullptr;
};

TEST_F(GreenContext, its_streams_run_and_their_progress_is_known) {
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Store(stream_, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(*done_.host, 1u);
  EXPECT_EQ(Commands(KeyOf(stream_)), 20u);
  EXPECT_EQ(StateOf(stream_), kQueueStateIdle);
}

TEST_F(GreenContext, its_streams_are_held) {
  StaysHeldBeside(stream_, [] {});
}

TEST_F(GreenContext, its_streams_stay_held_while_memory_of_the_primary_context_is_freed) {
  StaysHeldBeside(stream_, [this] {
    CUdeviceptr block = 0;
    cuCtxSetCurrent(context_);
    cuMemAlloc_v2(&block, 64);
    cuMemFree_v2(block);
  });
}

TEST_F(GreenContext, its_streams_stay_held_while_a_thread_waits_for_it) {
  standin_slow("cuCtxSynchronize", 1'000'000);
  StaysHeldBeside(stream_, [this] {
    EXPECT_EQ(cuCtxSetCurrent(green_context_), CUDA_SUCCESS);
    cuCtxSynchronize();
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  });
  standin_slow("cuCtxSynchronize", 0);
}

// It can be current to one thread at a time, so we may not make it current to another one.
TEST_F(GreenContext, questions_about_its_streams_do_not_take_it_from_the_programs_thread) {
  ASSERT_EQ(Spin(stream_, 1), CUDA_SUCCESS);
  const XQueueHandle queue = QueueOf(stream_, KeyOf(stream_));
  std::atomic<bool> stop{false};
  // What a question does takes long enough to meet the program's thread.
  standin_slow("cuStreamIsCapturing", 100'000);
  std::thread asking([&] {
    XQueueState state = kQueueStateUnknown;
    while (!stop.load()) EXPECT_EQ(XQueueQuery(queue, &state), kXSchedSuccess);
  });
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(Spin(stream_, 100), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPushCurrent_v2(green_context_), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, green_context_);
  }
  stop.store(true);
  asking.join();
  standin_slow("cuStreamIsCapturing", 0);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(GreenContext, a_launch_leaves_the_launching_threads_context_current) {
  ASSERT_EQ(cuCtxSetCurrent(green_context_), CUDA_SUCCESS);
  ASSERT_EQ(Store(stream_, 1), CUDA_SUCCESS);
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, green_context_);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(GreenContext, its_default_stream_is_a_queue_of_its_own_and_holds_others_no_longer_than_it_works) {
  ASSERT_EQ(cuCtxSetCurrent(green_context_), CUDA_SUCCESS);
  ASSERT_EQ(Store(nullptr, 1), CUDA_SUCCESS);
  const uint64_t key = LegacyStreamKey(reinterpret_cast<uint64_t>(green_context_));
  EXPECT_TRUE(HasQueue(key));
  EXPECT_FALSE(HasQueue(LegacyKey()));
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  ASSERT_EQ(CudaQueueGet(&hwq, nullptr), kXSchedSuccess);
  ASSERT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
  ASSERT_EQ(XHintPriority(queue, 5), kXSchedSuccess);
  bool held = false;
  for (int i = 0; i < 20 && !held; ++i) {
    ASSERT_EQ(Spin(nullptr, 20'000), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWriteValue32_v2(low_, ScratchWord(), 1, 0), CUDA_SUCCESS);
    held = WaitUntil([this] { return IsHeld(low_); }, milliseconds(50));
  }
  EXPECT_TRUE(held);
  // The program does not wait, and no thread of ours can ask.
  EXPECT_TRUE(WaitUntil([this] { return !IsHeld(low_); }));
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
}

TEST_F(GreenContext, as_it_ends_its_queues_end_and_those_of_the_primary_context_stay) {
  ASSERT_EQ(Store(stream_, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  const uint64_t key = KeyOf(stream_);
  ASSERT_TRUE(HasQueue(key));
  ASSERT_EQ(cuGreenCtxDestroy(green_), CUDA_SUCCESS);
  green_ = nullptr;
  EXPECT_FALSE(HasQueue(key));
  EXPECT_TRUE(HasQueue(KeyOf(low_)));
  EXPECT_EQ(CudaOwnerOf(green_context_), green_context_);
}

// Its gates read the control blocks through the primary context's mapping.
TEST_F(GreenContext, those_that_come_and_go_leave_no_mappings) {
  Occupy(urgent_);
  ASSERT_EQ(Store(stream_, 1), CUDA_SUCCESS);
  const uint64_t mapped = standin_calls("cuMemHostRegister_v2");
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cuGreenCtxDestroy(green_), CUDA_SUCCESS);
    Make();
    Occupy(urgent_);
    const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
    EXPECT_TRUE(WaitUntil([&] {
      EXPECT_EQ(Store(stream_, 1), CUDA_SUCCESS);
      return standin_calls("cuStreamBatchMemOp_v2") > gates;
    }));
    Open();
    ASSERT_EQ(cuStreamSynchronize(urgent_), CUDA_SUCCESS);
  }
  EXPECT_EQ(standin_calls("cuMemHostRegister_v2"), mapped);
}

}  // namespace
}  // namespace xsched::cuda
