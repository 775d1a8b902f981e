// Streams and contexts that are destroyed, and handles that are reused.
#include <atomic>
#include <thread>

#include "scheduled.h"

namespace xsched::cuda {
namespace {

using Lifetime = CudaProgram;

TEST_F(Lifetime, a_destroyed_streams_queue_goes_before_it) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
}

TEST_F(Lifetime, a_handle_that_comes_back_is_a_new_stream) {
  for (int i = 0; i < 2000; ++i) {
    CUstream stream = NewStream();
    ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
    ASSERT_EQ(Commands(KeyOf(stream)), 1u) << "stream " << i;
    ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
}

TEST_F(Lifetime, a_destroyed_contexts_queues_go_before_it) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  CUstream stream = NewStream();
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
  EXPECT_FALSE(HasQueue(LegacyStreamKey(reinterpret_cast<uint64_t>(context))));
}

TEST_F(Lifetime, a_reset_devices_queues_go_and_its_next_ones_come) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
  SetUp();
  stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST_F(Lifetime, the_queues_of_a_reset_devices_green_contexts_go) {
  CUdevResource multiprocessors{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuDeviceGetDevResource(0, &multiprocessors, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  ASSERT_EQ(cuDevResourceGenerateDesc(&description, &multiprocessors, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  ASSERT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_TRUE(HasQueue(KeyOf(stream)));
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
}

TEST_F(Lifetime, the_reset_of_a_device_that_was_never_used_leaves_the_queues_of_others) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(1), CUDA_SUCCESS);
  EXPECT_TRUE(HasQueue(KeyOf(stream)));
}

TEST_F(Lifetime, the_end_of_a_context_puts_nothing_on_a_stream_that_captures) {
  CUstream stream = NewStream();
  Word finish;
  finish.Make();
  ASSERT_EQ(cuStreamWaitValue32_v2(stream, finish.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  // At a gate, the device will report that it has finished this.
  ASSERT_EQ(XQueueSuspend(QueueOf(stream, KeyOf(stream)), kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context_), CUDA_ERROR_INVALID_CONTEXT) << "it is a primary one";
  CUgraph graph = nullptr;
  size_t nodes = 0;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 1u);
  *finish.host = 1;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Lifetime, at_the_end_of_a_context_the_work_of_another_threads_stream_counts_until_it_is_done) {
  Word finish;
  Word scratch;
  finish.Make();
  scratch.Make();
  ASSERT_EQ(cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  std::atomic<XQueueHandle> working{0};
  std::atomic<bool> ended{false};
  std::thread other([&] {
    const CUstream stream = CU_STREAM_PER_THREAD;
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitValue32_v2(stream, finish.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    const XQueueHandle queue = preempt::FindXQueue(kPlatformCUDA, PerThreadKey())->handle();
    EXPECT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
    EXPECT_EQ(cuStreamWriteValue32_v2(stream, scratch.device, 1, 0), CUDA_SUCCESS);
    working = queue;
    // Its default stream ends with it.
    EXPECT_TRUE(WaitUntil([&] { return ended.load(); }));
  });
  ASSERT_TRUE(WaitUntil([&] { return working != 0; }));
  std::thread destroying([this] { EXPECT_EQ(cuCtxDestroy_v2(context_), CUDA_SUCCESS); });
  const auto is_gone = [&] {
    XQueueState state = kQueueStateUnknown;
    return XQueueQuery(working, &state) == kXSchedErrorNotFound;
  };
  EXPECT_FALSE(WaitUntil(is_gone, milliseconds(50)));
  *finish.host = 1;
  destroying.join();
  EXPECT_TRUE(is_gone());
  ended = true;
  other.join();
}

TEST_F(Lifetime, the_last_release_of_a_primary_context_takes_its_queues_and_no_earlier_one) {
  CUcontext again = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_TRUE(HasQueue(KeyOf(stream)));
  ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
}

TEST_F(Lifetime, a_command_without_a_context_fails_as_it_would_natively) {
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Launch(nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Lifetime, many_threads_may_meet_one_stream_at_once) {
  constexpr int kThreads = 8;
  CUstream stream = NewStream();
  std::thread threads[kThreads];
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      for (int i = 0; i < 100; ++i) EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), kThreads * 100u);
}

}  // namespace
}  // namespace xsched::cuda
