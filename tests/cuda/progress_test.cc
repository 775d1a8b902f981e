// Progress that XSched learns from the program's own waits. The tests use a per-thread default stream: only
// its thread can ask the driver about it, so there is no other source of progress.
#include "fixture.h"

namespace xsched::cuda {
namespace {

const CUstream kStream = CU_STREAM_PER_THREAD;

class Progress : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    ASSERT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostAlloc(&word_, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    *static_cast<volatile uint32_t*>(word_) = 0;
    ASSERT_EQ(Launch(kStream), CUDA_SUCCESS);
    ASSERT_EQ(State(), kQueueStateReady);
  }
  void TearDown() override {
    *static_cast<volatile uint32_t*>(word_) = 1;
    cuCtxSynchronize();
  }

  XQueueState State() const {
    XQueueState state = kQueueStateUnknown;
    EXPECT_EQ(XQueueQuery(QueueOf(kStream, PerThreadKey()), &state), kXSchedSuccess);
    return state;
  }
  // From here on, the stream waits until the end of the test.
  void Block() const {
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemHostGetDevicePointer_v2(&address, word_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitValue32_v2(kStream, address, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }

  CUevent event_ = nullptr;
  void* word_ = nullptr;
};

TEST_F(Progress, a_synchronized_stream_is_idle) {
  ASSERT_EQ(cuStreamSynchronize(kStream), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateIdle);
}

TEST_F(Progress, a_stream_that_answers_that_it_is_done_is_idle) {
  while (cuStreamQuery(kStream) != CUDA_SUCCESS) {
  }
  EXPECT_EQ(State(), kQueueStateIdle);
}

TEST_F(Progress, a_stream_that_answers_that_it_is_not_is_ready) {
  Block();
  ASSERT_EQ(cuStreamQuery(kStream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(State(), kQueueStateReady);
}

TEST_F(Progress, a_synchronized_event_tells_of_what_is_before_it) {
  ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateIdle);
}

TEST_F(Progress, a_synchronized_event_tells_nothing_of_what_is_behind_it) {
  ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
  Block();
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateReady);
}

TEST_F(Progress, an_event_that_answers_that_it_has_happened_tells_as_well) {
  ASSERT_EQ(cuEventRecordWithFlags(event_, kStream, 0), CUDA_SUCCESS);
  while (cuEventQuery(event_) != CUDA_SUCCESS) {
  }
  EXPECT_EQ(State(), kQueueStateIdle);
}

TEST_F(Progress, an_event_that_was_recorded_elsewhere_tells_nothing_of_this_stream) {
  CUstream other = NewStream();
  ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, other), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateReady);
}

TEST_F(Progress, an_event_of_a_stream_that_is_gone_says_nothing_of_its_successor) {
  CUevent block = nullptr;
  ASSERT_EQ(cuEventCreate(&block, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  CUstream stream = NewStream();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  Block();
  ASSERT_EQ(cuEventRecord(block, kStream), CUDA_SUCCESS);
  // It may reuse the handle, the record and the slot of the destroyed one.
  CUstream next = NewStream();
  ASSERT_EQ(cuStreamWaitEvent(next, block, 0), CUDA_SUCCESS);
  ASSERT_EQ(Launch(next), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(StateOf(next), kQueueStateReady);
}

TEST_F(Progress, a_synchronized_context_has_idle_streams) {
  CUstream other = NewStream();
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateIdle);
  EXPECT_EQ(StateOf(other), kQueueStateIdle);
}

TEST_F(Progress, a_copy_to_the_host_tells_that_all_before_it_is_done) {
  int value = 0;
  ASSERT_EQ(cuMemcpyDtoH_v2_ptds(&value, memory_, sizeof value), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateIdle);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace xsched::cuda
