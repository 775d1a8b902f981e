// A context that a kernel has brought down: every call fails from then on, our own included.
#include "fixture.h"
#include "standin.h"

namespace xsched::cuda {
namespace {

using FailedContext = CudaProgram;

TEST_F(FailedContext, its_streams_give_their_queues_back_when_they_go) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  XQueueHandle queue = QueueOf(stream, KeyOf(stream));
  // With gates behind which commands wait, so that the device would report.
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  standin_lose_contexts(0, CUDA_ERROR_ILLEGAL_ADDRESS);
  cuStreamDestroy_v2(stream);
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(queue, &state), kXSchedErrorNotFound);
}

TEST_F(FailedContext, its_streams_are_idle) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  standin_lose_contexts(0, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(StateOf(stream), kQueueStateIdle);
}

}  // namespace
}  // namespace xsched::cuda
