// Streams, events, default streams, kernels, host functions.
#include "fixture.h"

namespace standin_test {
namespace {

using StreamTest = Cuda;

TEST_F(StreamTest, work_of_one_stream_runs_in_order) {
  for (int i = 0; i < 20; ++i) SUCCEEDS(Append(a, i));
  SUCCEEDS(cuStreamSynchronize(a));
  std::vector<int> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(i);
  EXPECT_EQ(Log(), expected);
}

TEST_F(StreamTest, a_held_stream_holds_up_no_other) {
  SUCCEEDS(Hold(a));
  SUCCEEDS(Append(a, 1));
  SUCCEEDS(Append(b, 2));
  SUCCEEDS(cuStreamSynchronize(b));
  EXPECT_EQ(Log(), (std::vector{2}));
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{2, 1}));
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
}

TEST_F(StreamTest, kernels_of_two_streams_take_turns_on_the_device) {
  SUCCEEDS(Launch(a, "append_after", log, 1, 30'000));
  SUCCEEDS(Launch(a, "append_after", log, 2, 1));
  SUCCEEDS(Launch(b, "append_after", log, 3, 1));  // ready while 1 runs, and before 2 is
  SUCCEEDS(cuCtxSynchronize());
  EXPECT_EQ(Log(), (std::vector{1, 3, 2}));
}

TEST_F(StreamTest, a_kernel_runs_as_long_as_it_says) {
  CUevent from, to;
  SUCCEEDS(cuEventCreate(&from, 0));
  SUCCEEDS(cuEventCreate(&to, 0));
  SUCCEEDS(cuEventRecord(from, a));
  SUCCEEDS(Launch(a, "spin_us", 5000));
  SUCCEEDS(cuEventRecord(to, a));
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
  SUCCEEDS(cuEventSynchronize(to));
  SUCCEEDS(cuEventElapsedTime(&ms, from, to));
  EXPECT_GE(ms, 4.9f);
}

TEST_F(StreamTest, the_legacy_stream_waits_for_blocking_streams_only) {
  SUCCEEDS(Hold(blocking));
  SUCCEEDS(Append(blocking, 1));
  SUCCEEDS(Append(nullptr, 2));
  SUCCEEDS(Append(a, 3));
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{3}));
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  Open();
  SUCCEEDS(cuStreamSynchronize(nullptr));
  EXPECT_EQ(Log(), (std::vector{3, 1, 2}));
}

TEST_F(StreamTest, blocking_streams_wait_for_the_legacy_stream) {
  SUCCEEDS(Hold(nullptr));
  SUCCEEDS(Append(nullptr, 1));
  SUCCEEDS(Append(blocking, 2));
  SUCCEEDS(Append(CU_STREAM_PER_THREAD, 3));
  SUCCEEDS(Append(a, 4));
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{4}));
  Open();
  SUCCEEDS(cuCtxSynchronize());
  EXPECT_EQ(Log()[1], 1);
  EXPECT_EQ(Log().size(), 4u);
}

TEST_F(StreamTest, each_thread_has_a_default_stream_of_its_own) {
  unsigned long long mine = 0, again = 0, others = 0, legacy = 0;
  SUCCEEDS(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
  SUCCEEDS(cuStreamGetId(CU_STREAM_PER_THREAD, &again));
  SUCCEEDS(cuStreamGetId(nullptr, &legacy));
  std::thread([&] {
    cuCtxSetCurrent(context);
    EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &others), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(mine, again);
  EXPECT_NE(mine, others);
  EXPECT_NE(mine, legacy);
}

TEST_F(StreamTest, a_stream_waits_for_an_event_of_another) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  SUCCEEDS(Hold(a));
  SUCCEEDS(Append(a, 1));
  SUCCEEDS(cuEventRecord(event, a));
  SUCCEEDS(cuStreamWaitEvent(b, event, 0));
  SUCCEEDS(Append(b, 2));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  Open();
  SUCCEEDS(cuStreamSynchronize(b));
  EXPECT_EQ(Log(), (std::vector{1, 2}));
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(StreamTest, recording_an_event_anew_does_not_change_existing_waits) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  SUCCEEDS(cuEventRecord(event, a));
  SUCCEEDS(cuStreamWaitEvent(b, event, 0));
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuEventRecord(event, a));
  SUCCEEDS(cuStreamSynchronize(b));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
}

TEST_F(StreamTest, an_event_never_recorded_counts_as_passed) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_SUCCESS);
}

TEST_F(StreamTest, a_destroyed_stream_finishes_its_work) {
  CUstream gone;
  SUCCEEDS(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
  SUCCEEDS(Hold(gone));
  SUCCEEDS(Append(gone, 1));
  SUCCEEDS(cuStreamDestroy(gone));
  EXPECT_EQ(cuStreamQuery(gone), CUDA_ERROR_INVALID_HANDLE);
  Open();
  SUCCEEDS(cuCtxSynchronize());
  EXPECT_EQ(Log(), (std::vector{1}));
}

TEST_F(StreamTest, a_host_function_holds_up_its_own_stream_only) {
  std::atomic<bool> go{false};
  SUCCEEDS(cuLaunchHostFunc(
      a,
      [](void* data) {
        while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::sleep_for(1ms);
      },
      &go));
  SUCCEEDS(Append(a, 1));
  SUCCEEDS(Append(b, 2));
  SUCCEEDS(cuStreamSynchronize(b));
  EXPECT_EQ(Log(), (std::vector{2}));
  go = true;
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{2, 1}));
}

TEST_F(StreamTest, a_host_function_may_not_allocate_but_may_query) {
  struct Results {
    CUstream other;
    CUresult allocate, query;
  } results{b, CUDA_SUCCESS, CUDA_ERROR_UNKNOWN};
  SUCCEEDS(cuLaunchHostFunc(
      a,
      [](void* data) {
        auto& r = *static_cast<Results*>(data);
        CUdeviceptr p;
        r.allocate = cuMemAlloc(&p, 4);
        r.query = cuStreamQuery(r.other);
      },
      &results));
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(results.allocate, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(results.query, CUDA_SUCCESS);
}

TEST_F(StreamTest, parameters_may_come_in_one_buffer) {
  struct {
    int* log;
    int value;
  } arguments{log, 7};
  size_t size = sizeof(arguments);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  SUCCEEDS(cuLaunchKernel(Function("append"), 1, 1, 1, 1, 1, 1, 0, a, nullptr, extra));
  CUlaunchConfig config{.gridDimX = 1,
                        .gridDimY = 1,
                        .gridDimZ = 1,
                        .blockDimX = 1,
                        .blockDimY = 1,
                        .blockDimZ = 1,
                        .hStream = a};
  SUCCEEDS(cuLaunchKernelEx(&config, Function("append"), nullptr, extra));
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{7, 7}));
}

TEST_F(StreamTest, a_faulting_kernel_loses_the_context_for_good) {
  SUCCEEDS(Hold(a));
  SUCCEEDS(Launch(a, "fault"));
  SUCCEEDS(Append(a, 1));
  const CUfunction nop = Function("nop");
  Open();
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, b, nullptr, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr p;
  EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(Log().empty());
  EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  SUCCEEDS(cuCtxCreate(&context, nullptr, 0, 0));
  EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_SUCCESS);
}

TEST_F(StreamTest, a_process_that_is_not_scheduled_runs_no_kernel) {
  standin_set_scheduled(0, 0);
  SUCCEEDS(Append(a, 1));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  standin_set_scheduled(0, 1);
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{1}));
}

TEST_F(StreamTest, an_interrupted_kernel_goes_on_where_it_was) {
  const uint64_t before = standin_busy_ns(0);
  SUCCEEDS(Launch(a, "spin_us", 20'000));
  std::this_thread::sleep_for(5ms);
  standin_set_scheduled(0, 0);
  std::this_thread::sleep_for(50ms);
  standin_set_scheduled(0, 1);
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(standin_busy_ns(0) - before, 20'000'000u);
}

TEST_F(StreamTest, immediate_commands_are_done_when_the_call_is_back) {
  standin_set_immediate(1);
  SUCCEEDS(Append(a, 1));
  EXPECT_EQ(Log(), (std::vector{1}));
  SUCCEEDS(Hold(a));
  SUCCEEDS(Append(a, 2));
  EXPECT_EQ(Log(), (std::vector{1}));
  standin_set_immediate(0);
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{1, 2}));
}

}  // namespace
}  // namespace standin_test
