// Which XQueue a command is counted on.
#include <pthread.h>
#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "ipc/control_block.h"
#include "standin.h"
#include "xsched/cuda/hal.h"

namespace xsched::cuda {
namespace {

using Queues = CudaProgram;

TEST_F(Queues, a_stream_gets_its_queue_with_its_first_command) {
  CUstream stream = NewStream();
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_TRUE(HasQueue(KeyOf(stream)));
}

// With some drivers this takes up to 2 ms, for which the first request beside another program would wait.
TEST_F(Queues, a_contexts_first_queue_makes_the_control_blocks_visible_to_the_device) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  CUstream streams[] = {NewStream(), NewStream()};
  const uint64_t registered = standin_calls("cuMemHostRegister_v2");
  for (CUstream stream : streams) {
    ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
    EXPECT_EQ(standin_calls("cuMemHostRegister_v2"), registered + 1);
  }
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

// As programs for XSched 1.2 do it, without a look at the results.
TEST_F(Queues, a_program_that_wraps_a_stream_in_use_gets_the_queue_that_the_shim_has_made) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  EXPECT_EQ(CudaQueueCreate(&hwq, stream), kXSchedSuccess);
  EXPECT_EQ(XQueueCreate(&queue, hwq, kPreemptLevelBlock, kQueueCreateFlagNone), kXSchedSuccess);
  EXPECT_EQ(queue, QueueOf(stream, KeyOf(stream)));
  EXPECT_EQ(XHintPriority(queue, 7), kXSchedSuccess);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u) << "it is one queue";
}

TEST_F(Queues, after_the_programs_own_queue_the_shim_makes_one_although_an_event_was_recorded_meanwhile) {
  CUstream stream = NewStream();
  CUevent event = nullptr;
  HwQueueHandle hwq = 0;
  XQueueHandle own = 0;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(CudaQueueCreate(&hwq, stream), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&own, hwq, kPreemptLevelBlock, kQueueCreateFlagNone), kXSchedSuccess);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(XQueueDestroy(own), kXSchedSuccess);
  ASSERT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST_F(Queues, a_program_that_destroys_the_shims_queue_gets_no_other_one) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(XQueueDestroy(QueueOf(stream, KeyOf(stream))), kXSchedSuccess);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream)));
}

TEST_F(Queues, the_queue_of_a_stream_is_made_in_a_thread_without_a_context) {
  CUstream stream = NewStream();
  std::thread([&] {
    HwQueueHandle hwq = 0;
    HwQueueHandle found = 0;
    EXPECT_EQ(CudaQueueCreate(&hwq, nullptr), kXSchedErrorHardware) << "which default stream is not known";
    ASSERT_EQ(CudaQueueCreate(&hwq, stream), kXSchedSuccess);
    EXPECT_EQ(CudaQueueGet(&found, stream), kXSchedSuccess);
    EXPECT_EQ(found, hwq);
    CUcontext current = context_;
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr) << "it is left as it was";
    EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
  }).join();
}

TEST_F(Queues, the_null_stream_is_the_legacy_default_stream) {
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(Launch(CU_STREAM_LEGACY), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 2u);
}

TEST_F(Queues, a_default_stream_is_that_of_the_context_which_is_current_at_each_launch) {
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  CUcontext other = nullptr;
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const uint64_t key = LegacyStreamKey(reinterpret_cast<uint64_t>(other));
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(key), 1u) << "made";
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 2u) << "popped";
  ASSERT_EQ(cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(key), 2u) << "pushed";
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 3u) << "set";
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 4u) << "destroyed";
}

TEST_F(Queues, a_change_of_context_that_no_wrapper_sees_is_noticed_after_some_launches) {
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(FindDriver()->cuCtxSetCurrent(context_), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  EXPECT_GT(Commands(LegacyKey()), 0u);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

TEST_F(Queues, a_copy_without_a_stream_is_on_the_default_stream) {
  int value = 7;
  ASSERT_EQ(cuMemcpyHtoD_v2(memory_, &value, sizeof value), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH_v2(&value, memory_, sizeof value), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 2u);
}

TEST_F(Queues, in_per_thread_variants_the_null_stream_is_the_threads_own) {
  ASSERT_EQ(cuMemsetD32Async_ptsz(memory_, 1, kCount, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  int value = 7;
  ASSERT_EQ(cuMemcpyHtoD_v2_ptds(memory_, &value, sizeof value), CUDA_SUCCESS);
  EXPECT_EQ(Commands(PerThreadKey()), 3u);
  EXPECT_FALSE(HasQueue(LegacyKey()));
}

TEST_F(Queues, each_thread_has_a_default_stream_of_its_own_which_goes_with_it) {
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  const uint64_t ours = PerThreadKey();
  uint64_t theirs = 0;
  std::thread([&] {
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    theirs = PerThreadKey(ours);
    EXPECT_EQ(Commands(theirs), 1u);
    ASSERT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(Commands(ours), 1u);
  EXPECT_NE(theirs, 0u);
  EXPECT_FALSE(HasQueue(theirs));
}

TEST_F(Queues, the_threads_own_stream_needs_no_thread_specific_value) {
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) pthread_setspecific(key, &key);
  void* const before = pthread_getspecific(0);
  EXPECT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(pthread_getspecific(0), before) << "somebody else's";
  EXPECT_TRUE(HasQueue(PerThreadKey()));
}

TEST_F(Queues, contexts_have_default_streams_of_their_own) {
  CUcontext other = nullptr;
  ASSERT_EQ(Launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);  // it becomes the current context
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Commands(LegacyKey()), 1u);
  EXPECT_EQ(Commands(LegacyStreamKey(reinterpret_cast<uint64_t>(other))), 1u);
}

TEST_F(Queues, waits_and_events_are_no_commands) {
  CUstream stream = NewStream();
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST_F(Queues, a_command_that_the_driver_refuses_leaves_the_queue_idle) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  ASSERT_NE(cuMemsetD32Async(1, 1, kCount, stream), CUDA_SUCCESS);
  EXPECT_EQ(StateOf(stream), kQueueStateIdle);
}

TEST_F(Queues, streams_beyond_what_a_process_can_have_run_unscheduled_and_one_line_says_so) {
  std::vector<CUstream> streams(ipc::kMaxQueues + 100);
  testing::internal::CaptureStderr();
  for (CUstream& stream : streams) {
    stream = NewStream();
    ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(HasQueue(KeyOf(streams.front())));
  EXPECT_FALSE(HasQueue(KeyOf(streams.back())));
  EXPECT_EQ(text.find("more than"), text.rfind("more than")) << text;
  EXPECT_NE(text.find("more than"), std::string::npos);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 2);
}

}  // namespace
}  // namespace xsched::cuda
