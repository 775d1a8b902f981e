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

// ---- recordings that no call shows: what the event stood for before is not what it stands for now ----

class UnseenRecording : public Progress {
 protected:
  void SetUp() override {
    Progress::SetUp();
    ASSERT_EQ(cuEventDestroy_v2(event_), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), CUDA_SUCCESS);
    other_ = NewStream();
    ASSERT_EQ(Launch(other_), CUDA_SUCCESS);
    Block();
    ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
  }
  // The event has been recorded on the other stream.
  void TellsNothingOfThisStream() const {
    ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
    EXPECT_EQ(State(), kQueueStateReady);
  }
  void Run(CUgraph graph) const {
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(executable, other_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
  }

  CUstream other_ = nullptr;
};

TEST_F(UnseenRecording, by_a_graphs_node_tells_nothing) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, event_), CUDA_SUCCESS);
  Run(graph);
  TellsNothingOfThisStream();
}

TEST_F(UnseenRecording, by_a_node_with_parameters_tells_nothing) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  parameters.eventRecord.event = event_;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
  Run(graph);
  TellsNothingOfThisStream();
}

TEST_F(UnseenRecording, by_a_captured_graph_tells_nothing) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(other_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecordWithFlags(event_, other_, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(other_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
  Run(graph);
  TellsNothingOfThisStream();
}

TEST_F(UnseenRecording, by_another_process_tells_nothing) {
  CUipcEventHandle handle;
  CUevent opened = nullptr;
  ASSERT_EQ(cuIpcGetEventHandle(&handle, event_), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcOpenEventHandle(&opened, handle), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(opened, other_), CUDA_SUCCESS);
  TellsNothingOfThisStream();
}

TEST_F(UnseenRecording, by_a_kernel_tells_nothing) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  *static_cast<volatile uint32_t*>(word_) = 1;  // loading waits for all work
  ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "nop"), CUDA_SUCCESS);
  ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, other_, nullptr, nullptr), CUDA_SUCCESS);
  for (CUlaunchAttributeID id :
       {CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT}) {
    ASSERT_EQ(cuEventDestroy_v2(event_), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    *static_cast<volatile uint32_t*>(word_) = 0;
    Block();
    ASSERT_EQ(cuEventRecord(event_, kStream), CUDA_SUCCESS);
    CUlaunchAttribute attribute{};
    attribute.id = id;
    attribute.value.launchCompletionEvent.event = event_;
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, other_, &attribute, 1};
    ASSERT_EQ(cuLaunchKernelEx(&config, function, nullptr, nullptr), CUDA_SUCCESS);
    TellsNothingOfThisStream();
    *static_cast<volatile uint32_t*>(word_) = 1;
    ASSERT_EQ(cuStreamSynchronize(kStream), CUDA_SUCCESS);
  }
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

TEST_F(Progress, a_copy_of_nothing_to_the_host_tells_nothing) {
  Block();
  uint32_t value = 0;
  ASSERT_EQ(cuMemcpyDtoH_v2_ptds(&value, memory_, 0), CUDA_SUCCESS);
  EXPECT_EQ(State(), kQueueStateReady);
}

}  // namespace
}  // namespace xsched::cuda
