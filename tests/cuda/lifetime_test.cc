// Streams and contexts that are destroyed, and handles that are reused.
#include <thread>

#include "fixture.h"

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
