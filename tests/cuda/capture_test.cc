// Stream captures pass untouched, and nothing that XSched does invalidates one.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "fixture.h"

namespace xsched::cuda {
namespace {

class Capture : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    stream_ = NewStream();
  }

  void Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) const {
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, mode), CUDA_SUCCESS);
  }
  CUgraph End() const {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    EXPECT_NE(graph, nullptr);
    return graph;
  }
  static size_t Nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    return count;
  }

  CUstream stream_ = nullptr;
};

TEST_F(Capture, a_captured_command_is_no_command_of_the_stream) {
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Nodes(End()), 2u);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

// A question to the driver would invalidate it.
TEST_F(Capture, a_wait_for_what_was_launched_before_it_fails_and_does_it_no_harm) {
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  const XQueueHandle queue = QueueOf(stream_, KeyOf(stream_));
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(XQueueWaitAll(queue), kXSchedErrorNotAllowed);
  EXPECT_EQ(Nodes(End()), 1u);
  EXPECT_EQ(XQueueWaitAll(queue), kXSchedSuccess);
}

// On another thread, the driver would wait for that thread's own default stream.
TEST_F(Capture, another_thread_cannot_wait_for_a_threads_default_stream) {
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  const XQueueHandle queue = QueueOf(CU_STREAM_PER_THREAD, PerThreadKey());
  XResult by_another = kXSchedSuccess;
  std::thread([&] { by_another = XQueueWaitAll(queue); }).join();
  EXPECT_EQ(by_another, kXSchedErrorNotAllowed);
  EXPECT_EQ(XQueueWaitAll(queue), kXSchedSuccess);
}

// At level 2, so that no hard stop ends the wait.
TEST_F(Capture, another_thread_cannot_wait_until_a_threads_default_stream_has_stopped) {
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  const XQueueHandle queue = QueueOf(CU_STREAM_PER_THREAD, PerThreadKey());
  ASSERT_EQ(XQueueSetPreemptLevel(queue, kPreemptLevelDeactivate), kXSchedSuccess);
  auto suspend = [queue] { return XQueueSuspend(queue, kQueueSuspendFlagSyncHwQueue); };
  std::future<XResult> by_another = std::async(std::launch::async, suspend);
  EXPECT_EQ(by_another.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  // A wait that goes on ends here, at the gate before this command.
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(by_another.get(), kXSchedErrorNotAllowed);
  EXPECT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS) << "it is not suspended";
}

TEST_F(Capture, a_thread_waits_until_its_own_default_stream_has_stopped) {
  ASSERT_EQ(Launch(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  const XQueueHandle queue = QueueOf(CU_STREAM_PER_THREAD, PerThreadKey());
  ASSERT_EQ(XQueueSetPreemptLevel(queue, kPreemptLevelDeactivate), kXSchedSuccess);
  EXPECT_EQ(XQueueSuspend(queue, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  EXPECT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
}

TEST_F(Capture, a_second_begin_which_the_driver_refuses_changes_nothing) {
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  Begin();
  ASSERT_NE(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Nodes(End()), 1u);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

// CUDA 13.3 has a further way to begin a capture, which the headers of this build may not know.
TEST_F(Capture, that_a_newer_driver_begins_in_a_way_of_its_own_is_noticed) {
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  void* found = nullptr;
  ASSERT_EQ(cuGetProcAddress_v2("cuStreamBeginRecaptureToGraph", &found, 13000, 0, nullptr), CUDA_SUCCESS);
  ASSERT_NE(found, nullptr);
  const auto begin = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode, CUgraph, void*)>(found);
  ASSERT_EQ(begin(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Nodes(End()), 2u);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u) << "as of any other capture";
}

TEST_F(Capture, after_it_the_stream_is_scheduled_again) {
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  End();
  EXPECT_FALSE(HasQueue(KeyOf(stream_)));
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

TEST_F(Capture, a_graphs_launch_is_one_command) {
  Begin();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, End(), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

TEST_F(Capture, a_stream_that_joins_by_an_event_is_captured_as_well) {
  CUstream other = NewStream();
  CUevent fork = nullptr;
  CUevent join = nullptr;
  ASSERT_EQ(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(fork, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  ASSERT_EQ(Launch(other), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(join, other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(stream_, join, 0), CUDA_SUCCESS);
  EXPECT_EQ(Nodes(End()), 2u);
  EXPECT_EQ(Commands(KeyOf(other)), 1u) << "the one before the capture";
}

TEST_F(Capture, other_streams_are_scheduled_meanwhile_and_their_first_commands_do_not_invalidate_it) {
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  CUstream other = nullptr;
  std::thread([&] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    other = NewStream();
    EXPECT_EQ(Launch(other), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(Commands(KeyOf(other)), 1u);
  EXPECT_EQ(Nodes(End()), 1u);
}

TEST_F(Capture, this_threads_capture_mode_is_the_programs_own_again_after_a_stream_was_met) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  ASSERT_EQ(Launch(NewStream()), CUDA_SUCCESS);
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST_F(Capture, an_invalidated_capture_ends_as_it_would_natively) {
  Begin();
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_NE(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_NE(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

TEST_F(Capture, modules_and_memory_may_be_used_in_relaxed_mode) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Nodes(End()), 1u);
}

TEST_F(Capture, a_stream_that_joins_one_while_it_is_asked_about_spoils_nothing) {
  CUstream joining = NewStream();
  CUevent fork = nullptr;
  CUevent join = nullptr;
  ASSERT_EQ(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(Launch(joining), CUDA_SUCCESS);
  std::atomic<bool> done{false};
  std::thread asking([&, queue = QueueOf(joining, KeyOf(joining))] {
    for (XQueueState state = kQueueStateUnknown; !done;) XQueueQuery(queue, &state);
  });
  int spoilt = 0;
  for (int i = 0; i < 20000; ++i) {
    CUgraph graph = nullptr;
    // A launch, so that the stream is not known to be idle.
    ASSERT_EQ(Launch(joining), CUDA_SUCCESS);
    Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    bool well = cuEventRecord(fork, stream_) == CUDA_SUCCESS;
    well &= cuStreamWaitEvent(joining, fork, 0) == CUDA_SUCCESS;
    well &= Launch(joining) == CUDA_SUCCESS;
    well &= cuEventRecord(join, joining) == CUDA_SUCCESS;
    well &= cuStreamWaitEvent(stream_, join, 0) == CUDA_SUCCESS;
    well &= cuStreamEndCapture(stream_, &graph) == CUDA_SUCCESS;
    spoilt += !well;
    if (graph != nullptr) cuGraphDestroy(graph);
  }
  done = true;
  asking.join();
  EXPECT_EQ(spoilt, 0);
}

}  // namespace
}  // namespace xsched::cuda
