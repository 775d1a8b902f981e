// A context in which a kernel has failed. From then on every call fails, including our own.
#include "scheduled.h"
#include "standin.h"
#include "xsched/cuda/hal.h"

namespace xsched::cuda {
namespace {

using FailedContext = CudaProgram;

TEST_F(FailedContext, its_streams_give_their_queues_back_when_they_go) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  XQueueHandle queue = QueueOf(stream, KeyOf(stream));
  // Commands wait behind gates, so that the device would report progress.
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  standin_lose_contexts(0, CUDA_ERROR_ILLEGAL_ADDRESS);
  cuStreamDestroy_v2(stream);
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(queue, &state), kXSchedErrorNotFound);
}

// A stream with commands behind gates that is destroyed while its context is well: the device would report
// when they have finished.
class DestroyedStream : public CudaProgram, public testing::WithParamInterface<CUresult> {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    ASSERT_EQ(cuCtxCreate_v2(&failing_, 0, 0), CUDA_SUCCESS);
    DestroyAStreamAtWork();
  }
  void TearDown() override { *finish_.host = 1; }
  // In the current context.
  void DestroyAStreamAtWork() {
    CUstream stream = NewStream();
    CUdeviceptr memory = 0;
    ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    // The stream has work for as long as this word is 0, also when its gate has been opened.
    finish_.Make();
    ASSERT_EQ(cuStreamWaitValue32_v2(stream, finish_.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    HwQueueHandle hwq = 0;
    ASSERT_EQ(CudaQueueGet(&hwq, stream), kXSchedSuccess);
    ASSERT_EQ(XQueueGet(&queue_, hwq), kXSchedSuccess);
    ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(cuMemsetD32Async(memory, 1, 1, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    XQueueState state = kQueueStateUnknown;
    ASSERT_EQ(XQueueQuery(queue_, &state), kXSchedSuccess);
    ASSERT_EQ(state, kQueueStateReady);
  }
  // Whether the queue is gone, at the second question at the latest.
  bool IsGone() const {
    XQueueState state = kQueueStateUnknown;
    XQueueQuery(queue_, &state);
    return XQueueQuery(queue_, &state) == kXSchedErrorNotFound;
  }

  CUcontext failing_ = nullptr;
  XQueueHandle queue_ = 0;
  Word finish_;
};

TEST_P(DestroyedStream, gives_its_queue_back_when_its_context_fails) {
  EXPECT_FALSE(IsGone());
  standin_lose_context(failing_, GetParam());
  EXPECT_TRUE(IsGone());
}

TEST_P(DestroyedStream, gives_its_queue_back_to_the_next_stream_when_its_context_fails) {
  standin_lose_context(failing_, GetParam());
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(NewStream()), CUDA_SUCCESS);
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(queue_, &state), kXSchedErrorNotFound);
}

TEST_P(DestroyedStream, gives_its_queue_back_when_its_failed_context_is_destroyed) {
  standin_lose_context(failing_, GetParam());
  cuCtxDestroy_v2(failing_);
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(queue_, &state), kXSchedErrorNotFound);
}

// cuCtxDestroy refuses primary contexts.
TEST_P(DestroyedStream, keeps_its_queue_when_its_context_does_not_end) {
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  DestroyAStreamAtWork();
  ASSERT_EQ(cuCtxDestroy_v2(context_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_FALSE(IsGone());
  standin_lose_context(context_, GetParam());
  EXPECT_TRUE(IsGone());
}

INSTANTIATE_TEST_SUITE_P(After, DestroyedStream,
                         testing::Values(CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                         CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_CONTEXT_IS_DESTROYED,
                                         CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_TENSOR_MEMORY_LEAK,
                                         CUDA_ERROR_MPS_CLIENT_TERMINATED));

TEST_F(FailedContext, its_streams_are_idle) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  standin_lose_contexts(0, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(StateOf(stream), kQueueStateIdle);
}

}  // namespace
}  // namespace xsched::cuda
