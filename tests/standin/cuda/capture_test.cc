// The rules of stream capture, and graphs.
#include <functional>

#include "fixture.h"

namespace standin_test {
namespace {

class CaptureTest : public Cuda {
 protected:
  CUresult Begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return cuStreamBeginCapture(stream, mode);
  }
  CUresult End(CUstream stream) { return cuStreamEndCapture(stream, &graph); }
  CUstreamCaptureStatus Status(CUstream stream) {
    CUstreamCaptureStatus status{};
    EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    return status;
  }
  // Another thread makes the call, in its own capture mode.
  CUresult Elsewhere(std::function<CUresult()> call,
                     CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    CUresult result{};
    std::thread([&] {
      cuCtxSetCurrent(context);
      cuThreadExchangeStreamCaptureMode(&mode);
      result = call();
    }).join();
    return result;
  }
  static CUresult Allocate() {
    CUdeviceptr p;
    return cuMemAlloc(&p, 4);
  }
  size_t Nodes() {
    size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    return count;
  }

  CUgraph graph = nullptr;
};

TEST_F(CaptureTest, captured_work_runs_when_the_graph_is_launched_and_each_time) {
  SUCCEEDS(Begin(a));
  SUCCEEDS(Append(a, 1));
  SUCCEEDS(Append(a, 2));
  SUCCEEDS(End(a));
  EXPECT_EQ(Nodes(), 2u);
  EXPECT_TRUE(Log().empty());
  CUgraphExec exec;
  SUCCEEDS(cuGraphInstantiate(&exec, graph, 0));
  SUCCEEDS(cuGraphLaunch(exec, b));
  SUCCEEDS(cuGraphLaunch(exec, a));
  SUCCEEDS(cuCtxSynchronize());
  EXPECT_EQ(Log(), (std::vector{1, 2, 1, 2}));
}

TEST_F(CaptureTest, another_stream_joins_by_an_event_and_comes_back_by_one) {
  CUevent fork, join;
  SUCCEEDS(cuEventCreate(&fork, 0));
  SUCCEEDS(cuEventCreate(&join, 0));
  SUCCEEDS(Begin(a));
  SUCCEEDS(Append(a, 1));
  SUCCEEDS(cuEventRecord(fork, a));
  SUCCEEDS(cuStreamWaitEvent(b, fork, 0));
  EXPECT_EQ(Status(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  SUCCEEDS(Append(b, 2));
  SUCCEEDS(cuEventRecord(join, b));
  SUCCEEDS(cuStreamWaitEvent(a, join, 0));
  SUCCEEDS(Append(a, 3));
  SUCCEEDS(End(a));
  EXPECT_EQ(Status(b), CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraphExec exec;
  SUCCEEDS(cuGraphInstantiate(&exec, graph, 0));
  SUCCEEDS(cuGraphLaunch(exec, a));
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{1, 2, 3}));
}

TEST_F(CaptureTest, a_fork_that_does_not_come_back_ends_without_a_graph) {
  CUevent fork;
  SUCCEEDS(cuEventCreate(&fork, 0));
  SUCCEEDS(Begin(a));
  SUCCEEDS(cuEventRecord(fork, a));
  SUCCEEDS(cuStreamWaitEvent(b, fork, 0));
  SUCCEEDS(Append(b, 1));
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(CaptureTest, a_global_capture_forbids_unsafe_calls_to_every_thread) {
  SUCCEEDS(Begin(a));
  EXPECT_EQ(Elsewhere(Allocate), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(Append(a, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CaptureTest, a_relaxed_thread_may_make_unsafe_calls_during_any_capture) {
  SUCCEEDS(Begin(a));
  EXPECT_EQ(Elsewhere(Allocate, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  SUCCEEDS(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  SUCCEEDS(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(End(a), CUDA_SUCCESS);
}

TEST_F(CaptureTest, a_thread_local_capture_forbids_unsafe_calls_to_its_own_thread) {
  SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(Elsewhere(Allocate), CUDA_SUCCESS);
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(Allocate(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, a_relaxed_capture_forbids_no_unsafe_call) {
  SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  EXPECT_EQ(Elsewhere(Allocate), CUDA_SUCCESS);
  EXPECT_EQ(End(a), CUDA_SUCCESS);
}

TEST_F(CaptureTest, these_calls_are_unsafe) {
  static int page[16];
  void* host = nullptr;
  CUevent event;
  CUdeviceptr p = At(Memory(1)), q;
  SUCCEEDS(cuMemHostAlloc(&host, 4, 0));
  SUCCEEDS(cuEventCreate(&event, 0));
  const std::pair<const char*, std::function<CUresult()>> calls[] = {
      {"cuMemFree", [&] { return cuMemFree(p); }},
      {"cuMemHostAlloc", [&] { return cuMemHostAlloc(&host, 4, 0); }},
      {"cuMemFreeHost", [&] { return cuMemFreeHost(host); }},
      {"cuMemHostRegister", [&] { return cuMemHostRegister(page, 64, 0); }},
      {"cuEventQuery", [&] { return cuEventQuery(event); }},
      {"cuEventSynchronize", [&] { return cuEventSynchronize(event); }},
      {"cuStreamQuery", [&] { return cuStreamQuery(b); }},
      {"cuStreamSynchronize", [&] { return cuStreamSynchronize(b); }},
      {"cuMemAllocAsync", [&] { return cuMemAllocAsync(&q, 4, b); }},
      {"cuModuleUnload", [&] { return cuModuleUnload(module); }},
  };
  for (const auto& [name, call] : calls) {
    SUCCEEDS(Begin(a));
    EXPECT_EQ(Elsewhere(call), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << name;
    EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << name;
  }
}

TEST_F(CaptureTest, these_calls_are_safe) {
  CUevent event;
  CUstream stream;
  CUmodule other;
  int value = 0;
  int* p = Memory(1);
  SUCCEEDS(cuEventCreate(&event, 0));
  const std::pair<const char*, std::function<CUresult()>> calls[] = {
      {"cuStreamCreate", [&] { return cuStreamCreate(&stream, 0); }},
      {"cuEventRecord", [&] { return cuEventRecord(event, b); }},
      {"cuModuleLoadData", [&] { return cuModuleLoadData(&other, "any"); }},
      {"cuLaunchKernel", [&] { return Append(b, 1); }},
      {"cuStreamWaitValue32", [&] { return cuStreamWaitValue32(b, At(gate), 0, 0); }},
      {"cuMemcpyDtoH", [&] { return cuMemcpyDtoH(&value, At(p), 4); }},
      {"cuStreamGetPriority", [&] { return cuStreamGetPriority(b, &value); }},
  };
  for (const auto& [name, call] : calls) {
    SUCCEEDS(Begin(a));
    EXPECT_EQ(Elsewhere(call), CUDA_SUCCESS) << name;
    EXPECT_EQ(End(a), CUDA_SUCCESS) << name;
  }
}

TEST_F(CaptureTest, the_legacy_stream_is_out_of_bounds_while_a_blocking_stream_captures) {
  SUCCEEDS(Begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status;
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(Status(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE) << "asking harms nobody";
  EXPECT_EQ(Append(nullptr, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(Status(blocking), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(End(blocking), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(Append(nullptr, 1), CUDA_SUCCESS) << "a non-blocking stream has no dependency on it";
  EXPECT_EQ(End(a), CUDA_SUCCESS);
}

TEST_F(CaptureTest, a_capturing_stream_can_be_neither_queried_nor_synchronized) {
  for (const auto& call : {cuStreamQuery, cuStreamSynchronize}) {
    SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(call(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_F(CaptureTest, the_context_cannot_be_synchronized_whatever_the_modes) {
  SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(Elsewhere(cuCtxSynchronize, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, a_captured_event_cannot_be_queried) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  SUCCEEDS(Begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  SUCCEEDS(cuEventRecord(event, a));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEEDS(cuEventRecord(event, b));
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
}

TEST_F(CaptureTest, a_capture_waits_for_no_event_from_outside) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  SUCCEEDS(cuEventRecord(event, b));
  SUCCEEDS(Begin(a));
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, two_captures_do_not_merge) {
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  SUCCEEDS(Begin(a));
  SUCCEEDS(Begin(b));
  SUCCEEDS(cuEventRecord(event, a));
  EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(End(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(b), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, a_capture_ends_where_and_by_whom_it_was_begun) {
  SUCCEEDS(Begin(a));
  EXPECT_EQ(Begin(a), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(Begin(nullptr), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(b), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(Elsewhere([&] { return End(a); }), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CaptureTest, memory_operations_and_host_functions_become_nodes) {
  static std::atomic<int> calls{0};
  calls = 0;
  SUCCEEDS(Begin(a));
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuLaunchHostFunc(
      a, [](void*) { ++calls; }, nullptr));
  SUCCEEDS(End(a));
  CUgraphExec exec;
  SUCCEEDS(cuGraphInstantiate(&exec, graph, 0));
  SUCCEEDS(cuGraphLaunch(exec, a));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(calls, 0);
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace standin_test
