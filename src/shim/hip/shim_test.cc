// The shim over stand-ins for the runtime, of which each test loads instances of its own. This program is
// linked to the shim, which so comes first in its global scope, as if it were preloaded.
#include <atomic>
#include <cstring>
#include <thread>
#include <type_traits>

#include "base/libraries.h"
#include "shim/hip/instances.h"
#include "shim/hip/testing/runtime_instance.h"

using namespace xsched::hip;

// As programs declare them.
#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream) \
  extern "C" result name parameters __asm__(symbol);
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

namespace {
std::atomic<bool> shim_opens_nothing{false};
}  // namespace

// This program comes first, so all of its libraries call this one: for the shim itself, it may fail.
extern "C" __attribute__((visibility("default"))) void* dlopen(const char* name, int mode) noexcept {
  using Open = void*(const char*, int);
  static auto* const next = reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "dlopen"));
  const link_map* caller = xsched::LibraryAt(__builtin_return_address(0));
  const bool fails =
      shim_opens_nothing && caller != nullptr && std::strstr(caller->l_name, "libshimhip") != nullptr;
  return fails ? nullptr : next(name, mode);
}

namespace xsched::hip {
namespace {

// The handle of the XQueue that the shim has made.
XQueueHandle HandleOf(const RuntimeInstance& instance, hipStream_t stream) {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  EXPECT_EQ(HipQueueRegister(instance.runtime(), 0, stream, KeyOf(stream), nullptr, &hwq),
            kXSchedErrorNotAllowed);
  EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
  return queue;
}

// ---- by linking ----

TEST(HipShim, a_library_reaches_the_instance_that_it_is_linked_to) {
  RuntimeInstance a, b;
  EXPECT_EQ(a.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(b.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(b.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 2);
  EXPECT_EQ(Commands(a.NullKey()), 1u);
  EXPECT_EQ(Commands(b.NullKey()), 2u);
}

TEST(HipShim, the_c_function_that_libraries_import_is_scheduled) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(instance.Library("LibraryLaunch", stream), hipSuccess);
  EXPECT_EQ(instance.CallsOf("hipExtModuleLaunchKernel"), 1);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST(HipShim, a_stream_is_used_in_the_instance_that_made_it) {
  RuntimeInstance a, b;
  hipStream_t stream = a.NewStream();
  b.NewStream();
  EXPECT_EQ(b.Library("LibrarySet", stream), hipSuccess) << "the other instance does not know it";
  EXPECT_EQ(a.Launched(stream), 1u);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

// For example, because there is no memory just now.
TEST(HipShim, an_instance_that_cannot_be_opened_once_is_reached_by_the_next_call) {
  RuntimeInstance instance;
  shim_opens_nothing = true;
  EXPECT_EQ(instance.Library("LibrarySet", hipStream_t{}), hipErrorNotSupported);
  shim_opens_nothing = false;
  EXPECT_EQ(instance.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
}

// ---- what another instance has made: natively an error ----

// Calls that are bound to `b`, with what `a` has made.
class HipTwoInstances : public testing::Test {
 protected:
  RuntimeInstance a_, b_;
};

TEST_F(HipTwoInstances, a_function_is_launched_in_the_instance_that_has_it) {
  b_.NewStream();
  hipFunction_t function = nullptr;
  ASSERT_EQ(a_.Library("LibraryFunction", &function), hipSuccess);
  EXPECT_EQ(b_.Call(hipModuleLaunchKernel, "hipModuleLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                    nullptr, nullptr),
            hipSuccess);
  EXPECT_EQ(a_.Launched(nullptr), 1u);
  EXPECT_EQ(Commands(a_.NullKey()), 1u);
  EXPECT_EQ(b_.Call(hipFuncGetAttribute, "hipFuncGetAttribute", nullptr, 0, function), hipSuccess);
}

TEST_F(HipTwoInstances, a_kernels_handle_is_launched_in_the_instance_that_has_it) {
  b_.NewStream();
  a_.NewStream();
  hipLibrary_t library = nullptr;
  hipKernel_t kernel = nullptr;
  ASSERT_EQ(a_.Call(hipLibraryLoadData, "hipLibraryLoadData", &library, nullptr, nullptr, nullptr, 0, nullptr,
                    nullptr, 0),
            hipSuccess);
  ASSERT_EQ(b_.Call(hipLibraryGetKernel, "hipLibraryGetKernel", &kernel, library, "kernel"), hipSuccess);
  EXPECT_EQ(b_.Call(hipLaunchKernel, "hipLaunchKernel", kernel, dim3{}, dim3{}, nullptr, 0, nullptr),
            hipSuccess);
  EXPECT_EQ(a_.Launched(nullptr), 1u);
  EXPECT_EQ(Commands(a_.NullKey()), 1u);
}

TEST_F(HipTwoInstances, kernels_that_are_enumerated_belong_to_the_instance_of_their_library) {
  b_.NewStream();
  a_.NewStream();
  hipLibrary_t library = nullptr;
  ASSERT_EQ(a_.Call(hipLibraryLoadData, "hipLibraryLoadData", &library, nullptr, nullptr, nullptr, 0, nullptr,
                    nullptr, 0),
            hipSuccess);
  // More than the library has: what is behind those is no handle.
  char not_a_kernel;
  hipKernel_t kernels[3] = {nullptr, nullptr, &not_a_kernel};
  ASSERT_EQ(a_.Call(hipLibraryEnumerateKernels, "hipLibraryEnumerateKernels", kernels, 3, library),
            hipSuccess);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(b_.Call(hipLaunchKernel, "hipLaunchKernel", kernels[i], dim3{}, dim3{}, nullptr, 0, nullptr),
              hipSuccess);
  }
  EXPECT_EQ(a_.Launched(nullptr), 2u);
  EXPECT_EQ(b_.Call(hipLaunchKernel, "hipLaunchKernel", kernels[2], dim3{}, dim3{}, nullptr, 0, nullptr),
            hipErrorInvalidDeviceFunction);
  EXPECT_EQ(b_.CallsOf("hipLaunchKernel"), 1) << "it goes where the program said";
}

// As one from before the shim was loaded.
TEST_F(HipTwoInstances, a_kernels_handle_that_is_not_known_goes_where_it_is_used) {
  a_.NewStream();
  b_.NewStream();
  auto get = b_.Exported<hipError_t(hipKernel_t*, hipLibrary_t, const char*)>("hipLibraryGetKernel");
  hipKernel_t kernel = nullptr;
  ASSERT_EQ(get(&kernel, nullptr, "kernel"), hipSuccess);
  EXPECT_EQ(b_.Call(hipLaunchKernel, "hipLaunchKernel", kernel, dim3{}, dim3{}, nullptr, 0, nullptr),
            hipSuccess);
  EXPECT_EQ(b_.Launched(nullptr), 1u);
}

TEST_F(HipTwoInstances, a_graph_is_built_and_launched_in_the_instance_that_has_it) {
  b_.NewStream();
  hipGraph_t graph = nullptr;
  hipGraphNode_t node = nullptr;
  hipGraphExec_t exec = nullptr;
  ASSERT_EQ(a_.Library("LibraryGraph", &graph), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphAddEmptyNode, "hipGraphAddEmptyNode", &node, graph, nullptr, 0), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphNodeGetType, "hipGraphNodeGetType", node, nullptr), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphInstantiateWithFlags, "hipGraphInstantiateWithFlags", &exec, graph, 0),
            hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphLaunch, "hipGraphLaunch", exec, nullptr), hipSuccess);
  EXPECT_EQ(a_.Launched(nullptr), 1u);
}

TEST_F(HipTwoInstances, a_captured_graph_belongs_to_the_instance_of_its_stream) {
  b_.NewStream();
  hipStream_t stream = a_.NewStream();
  hipGraph_t graph = nullptr;
  ASSERT_EQ(b_.Call(hipStreamBeginCapture, "hipStreamBeginCapture", stream, hipStreamCaptureModeGlobal),
            hipSuccess);
  ASSERT_EQ(b_.Call(hipStreamEndCapture, "hipStreamEndCapture", stream, &graph), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphAddEmptyNode, "hipGraphAddEmptyNode", new hipGraphNode_t, graph, nullptr, 0),
            hipSuccess);
}

TEST_F(HipTwoInstances, nodes_that_are_listed_belong_to_the_instance_of_their_graph) {
  b_.NewStream();
  a_.NewStream();
  hipGraph_t graph = nullptr;
  ASSERT_EQ(a_.Library("LibraryGraph", &graph), hipSuccess);
  // More than the graph has: what is behind those is no node.
  char not_a_node;
  hipGraphNode_t nodes[2] = {nullptr, &not_a_node};
  hipGraphNode_t from = nullptr;
  hipGraphNode_t to = nullptr;
  size_t count = 2;
  ASSERT_EQ(a_.Call(hipGraphGetNodes, "hipGraphGetNodes", graph, nodes, &count), hipSuccess);
  ASSERT_EQ(a_.Call(hipGraphGetEdges, "hipGraphGetEdges", graph, &from, &to, &count), hipSuccess);
  for (hipGraphNode_t node : {nodes[0], from, to})
    EXPECT_EQ(b_.Call(hipGraphNodeGetType, "hipGraphNodeGetType", node, nullptr), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphNodeGetType, "hipGraphNodeGetType", nodes[1], nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(b_.CallsOf("hipGraphNodeGetType"), 1) << "it goes where the program said";
}

TEST_F(HipTwoInstances, what_a_stream_is_capturing_belongs_to_its_instance) {
  b_.NewStream();
  hipStream_t stream = a_.NewStream();
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* nodes = nullptr;
  size_t count = 0;
  ASSERT_EQ(b_.Call(hipStreamBeginCapture, "hipStreamBeginCapture", stream, hipStreamCaptureModeGlobal),
            hipSuccess);
  ASSERT_EQ(b_.Call(hipStreamGetCaptureInfo_v2, "hipStreamGetCaptureInfo_v2", stream, &status, nullptr,
                    &graph, &nodes, &count),
            hipSuccess);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(b_.Call(hipGraphNodeGetType, "hipGraphNodeGetType", nodes[0], nullptr), hipSuccess);
  EXPECT_EQ(b_.Call(hipGraphAddEmptyNode, "hipGraphAddEmptyNode", new hipGraphNode_t, graph, nullptr, 0),
            hipSuccess);
}

// NCCL asks like this before each launch, and what is in the graph's place is left over from other calls.
TEST_F(HipTwoInstances, of_a_stream_that_does_not_capture_nothing_is_remembered) {
  hipStream_t stream = a_.NewStream();
  hipStream_t of_b = b_.NewStream();
  hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
  hipGraph_t graph = reinterpret_cast<hipGraph_t>(of_b);
  const hipGraphNode_t left_over = of_b;
  const hipGraphNode_t* nodes = &left_over;
  size_t count = 1;
  ASSERT_EQ(a_.Call(hipStreamGetCaptureInfo_v2, "hipStreamGetCaptureInfo_v2", stream, &status, nullptr,
                    &graph, &nodes, &count),
            hipSuccess);
  ASSERT_EQ(status, hipStreamCaptureStatusNone);
  EXPECT_EQ(a_.Call(hipGetStreamDeviceId, "hipGetStreamDeviceId", of_b), 0) << "it is still a stream of b";
}

TEST_F(HipTwoInstances, a_stream_and_an_event_tell_of_themselves_in_their_instance) {
  b_.NewStream();
  hipStream_t stream = a_.NewStream();
  hipEvent_t event = nullptr;
  unsigned flags = 1;
  EXPECT_EQ(b_.Call(hipStreamGetFlags, "hipStreamGetFlags", stream, &flags), hipSuccess);
  EXPECT_EQ(b_.Call(hipGetStreamDeviceId, "hipGetStreamDeviceId", stream), 0);
  ASSERT_EQ(a_.Call(hipEventCreateWithFlags, "hipEventCreateWithFlags", &event, 0), hipSuccess);
  EXPECT_EQ(b_.Call(hipEventRecord, "hipEventRecord", event, stream), hipSuccess);
  EXPECT_EQ(b_.Call(hipEventQuery, "hipEventQuery", event), hipSuccess);
}

TEST_F(HipTwoInstances, what_has_ended_is_nobodys) {
  hipStream_t stream = a_.NewStream();
  b_.NewStream();
  ASSERT_EQ(b_.Call(hipStreamDestroy, "hipStreamDestroy", stream), hipSuccess);
  const int calls = b_.CallsOf("hipGetStreamDeviceId");
  EXPECT_EQ(b_.Call(hipGetStreamDeviceId, "hipGetStreamDeviceId", stream), -1);
  EXPECT_EQ(b_.CallsOf("hipGetStreamDeviceId"), calls + 1);
}

// A tail call: its return address is in this program, which is bound to the first instance.
TEST_F(HipTwoInstances, a_programs_variable_belongs_to_the_instance_of_its_library) {
  a_.NewStream();
  b_.NewStream();
  EXPECT_EQ(b_.Library("LibraryCopyToVariable"), hipSuccess);
  EXPECT_EQ(a_.Library("LibraryCopyToVariable"), hipSuccess);
  EXPECT_EQ(a_.Launched(nullptr), 1u);
  EXPECT_EQ(b_.Launched(nullptr), 1u);
}

// So it is for the dynamic linker: all that a library has bound by itself is bound to that instance.
TEST(HipShim, an_instance_in_the_global_scope_comes_first) {
  RuntimeInstance a(RTLD_GLOBAL), b;
  EXPECT_EQ(b.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 0);
}

TEST(HipShim, more_instances_than_have_ways_in_by_pointer_are_scheduled_by_linking) {
  RuntimeInstance instances[kMaxInstances + 1];
  for (const RuntimeInstance& instance : instances) {
    hipStream_t stream = instance.NewStream();
    EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
    EXPECT_EQ(Commands(KeyOf(stream)), 1u);
  }
}

// ---- every function ----

template <typename Result, typename... Args>
bool SucceedsWithNothing(Result (*function)(Args...)) {
  if constexpr (std::is_void_v<Result>) {
    function(Args{}...);
    return true;
  } else {
    return function(Args{}...) == Result{};
  }
}

struct WrappedFunction {
  const char* symbol;
  bool launches;
  bool (*succeeds)();
};
const WrappedFunction kWrapped[] = {
#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream) \
  {symbol, launches, [] { return SucceedsWithNothing(name); }},
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
};

TEST(HipShim, every_command_on_the_null_stream_counts) {
  RuntimeInstance instance;
  instance.NewStream();
  const uint64_t per_thread = PerThreadStreamKey(instance.runtime()->index(), 0, 1);
  uint64_t expected = 0;
  for (const WrappedFunction& function : kWrapped) {
    if (!function.launches) continue;
    EXPECT_TRUE(function.succeeds()) << function.symbol;
    EXPECT_EQ(Commands(instance.NullKey()) + Commands(per_thread), ++expected) << function.symbol;
    EXPECT_EQ(instance.CallsOf(function.symbol), 1) << function.symbol;
    instance.Finish(nullptr, 1);
  }
  EXPECT_GT(Commands(per_thread), 20u) << "the _spt variants";
  EXPECT_GT(expected, 90u);
}

TEST(HipShim, every_wrapped_function_passes_on_to_the_runtime) {
  RuntimeInstance instance;
  instance.NewStream();
  for (const WrappedFunction& function : kWrapped) {
    const std::string symbol = function.symbol;
    // These want somewhere to put something.
    if (function.launches || symbol == "hipGetProcAddress" || symbol.find("Create") != std::string::npos)
      continue;
    function.succeeds();
    EXPECT_EQ(instance.CallsOf(function.symbol), 1) << symbol;
  }
}

TEST(HipShim, a_configured_launch_goes_to_the_stream_that_was_said_before) {
  RuntimeInstance instance;
  hipStream_t outer = instance.NewStream();
  hipStream_t inner = instance.NewStream();
  EXPECT_EQ(hipConfigureCall({}, {}, 0, outer), hipSuccess);
  EXPECT_EQ(hipConfigureCall({}, {}, 0, inner), hipSuccess);
  EXPECT_EQ(hipLaunchByPtr(nullptr), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(inner)), 1u);
  EXPECT_EQ(Commands(KeyOf(outer)), 0u);
  EXPECT_EQ(hipLaunchByPtr(nullptr), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(outer)), 1u);
}

TEST(HipShim, one_launch_on_several_streams_counts_on_each) {
  RuntimeInstance instance;
  hipLaunchParams launches[2] = {};
  for (hipLaunchParams& launch : launches) launch.stream = instance.NewStream();
  EXPECT_EQ(hipExtLaunchMultiKernelMultiDevice(launches, 2, 0), hipSuccess);
  for (const hipLaunchParams& launch : launches) EXPECT_EQ(Commands(KeyOf(launch.stream)), 1u);
}

TEST(HipShim, a_graph_that_is_uploaded_when_it_is_made_executable_is_a_command_on_that_stream) {
  RuntimeInstance instance;
  hipGraphInstantiateParams params = {};
  params.uploadStream = instance.NewStream();
  hipGraphExec_t exec = nullptr;
  EXPECT_EQ(hipGraphInstantiateWithParams(&exec, nullptr, &params), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(params.uploadStream)), 0u);
  params.flags = kHipGraphInstantiateUpload;
  EXPECT_EQ(hipGraphInstantiateWithParams(&exec, nullptr, &params), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(params.uploadStream)), 1u);
}

TEST(HipShim, what_a_stream_captures_is_not_counted) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  EXPECT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  instance.Fake<decltype(FakeCapture)>("FakeCapture")(stream, 1);
  instance.Library("LibrarySet", stream);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
  instance.Fake<decltype(FakeCapture)>("FakeCapture")(stream, 0);
  EXPECT_EQ(hipStreamEndCapture(stream, nullptr), hipSuccess);
  instance.Library("LibrarySet", stream);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

// Every call of a runtime before ROCm 7 overwrites the last error.
TEST(HipShim, an_invalid_capture_that_ends_leaves_the_last_error) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  ASSERT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_NE(hipStreamQuery(stream), hipSuccess);
  EXPECT_EQ(hipStreamEndCapture(stream, nullptr), hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(instance.Exported<hipError_t()>("hipPeekAtLastError")(), hipErrorStreamCaptureInvalidated);
  instance.Library("LibrarySet", stream);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST(HipShim, a_capture_ends_with_its_stream) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  hipStream_t other = instance.NewStream();
  ASSERT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
  instance.Library("LibrarySet", other);
  const uint64_t calls = instance.Fake<decltype(FakeCalls)>("FakeCalls")();
  instance.Library("LibrarySet", other);
  EXPECT_EQ(instance.Fake<decltype(FakeCalls)>("FakeCalls")(), calls + 1) << "nothing else is asked";
}

TEST(HipShim, an_event_at_a_kernels_start_says_nothing_about_the_stream_of_its_last_recording) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  hipStream_t other = instance.NewStream();
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreateWithFlags(&event, 0), hipSuccess);
  instance.Library("LibrarySet", stream);
  ASSERT_EQ(hipEventRecord(event, stream), hipSuccess);
  ASSERT_EQ(hipExtLaunchKernel(nullptr, {}, {}, nullptr, 0, other, event, nullptr, 0), hipSuccess);
  // The stand-in does not record it.
  instance.Exported<hipError_t(hipEvent_t, hipStream_t)>("hipEventRecord")(event, other);
  instance.Finish(other, 1);
  EXPECT_EQ(hipEventSynchronize(event), hipSuccess);
  EXPECT_FALSE(QueueOf(KeyOf(stream))->Idle());
  instance.Finish(stream, 1);
}

TEST(HipShim, a_copy_to_the_host_finishes_nothing_that_another_thread_has_not_launched_yet) {
  constexpr hipMemcpyKind kDeviceToHost = 2;
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  instance.Finish(stream, 1);
  preempt::XQueue& queue = *QueueOf(KeyOf(stream));
  const auto copy = [stream] {
    int to = 0;
    return hipMemcpyWithStream(&to, stream, sizeof to, kDeviceToHost, stream);
  };
  const uint64_t number = queue.LaunchBegin();
  ASSERT_EQ(copy(), hipSuccess);
  EXPECT_LT(queue.retired(), number);
  queue.LaunchEnd(number, true);
  ASSERT_EQ(copy(), hipSuccess);
  EXPECT_TRUE(queue.Idle());
}

// Streams that another one is scheduled against.
class HipCapture : public testing::Test {
 protected:
  HipCapture() {
    EXPECT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
    LaunchOn(rival_);
    instance_.Finish(rival_, 1);
    EXPECT_EQ(hipStreamSynchronize(rival_), hipSuccess);
    LaunchOn(stream_);
    instance_.Finish(stream_, 1);
    EXPECT_EQ(XHintPriority(HandleOf(instance_, stream_), 1), kXSchedSuccess);
    // Until a marker is behind one.
    for (int i = 0; i < 1000 && Events() == 0; ++i) {
      LaunchOn(stream_);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      instance_.Finish(stream_, 1);
    }
    EXPECT_NE(Events(), 0);
    LaunchOn(stream_);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    LaunchOn(stream_);
  }
  ~HipCapture() override { XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown); }

  int Events() const { return instance_.Fake<decltype(FakeEvents)>("FakeEvents")(); }
  void LaunchOn(hipStream_t stream) const { EXPECT_EQ(instance_.Library("LibrarySet", stream), hipSuccess); }
  XQueueState StateOf(hipStream_t stream) const {
    XQueueState state = kQueueStateUnknown;
    EXPECT_EQ(XQueueQuery(HandleOf(instance_, stream), &state), kXSchedSuccess);
    return state;
  }

  RuntimeInstance instance_;
  hipStream_t rival_ = instance_.NewStream();
  hipStream_t stream_ = instance_.NewStream();
};

TEST_F(HipCapture, markers_from_before_it_do_not_spoil_it) {
  ASSERT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_TRUE(QueueOf(KeyOf(stream_))->Idle()) << "other programs need not wait for it";
  EXPECT_EQ(StateOf(stream_), kQueueStateReady) << "two commands have not finished";
  LaunchOn(stream_);
  EXPECT_EQ(hipStreamEndCapture(stream_, nullptr), hipSuccess);
  EXPECT_EQ(StateOf(stream_), kQueueStateReady);
  instance_.Finish(stream_, 2);
  EXPECT_EQ(StateOf(stream_), kQueueStateIdle);
}

TEST_F(HipCapture, a_stream_that_joins_it_does_not_spoil_it) {
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreateWithFlags(&event, 0), hipSuccess);
  ASSERT_EQ(hipStreamBeginCapture(rival_, hipStreamCaptureModeGlobal), hipSuccess);
  instance_.Fake<decltype(FakeCapture)>("FakeCapture")(rival_, 0);
  instance_.Fake<decltype(FakeCapture)>("FakeCapture")(rival_, 1);
  ASSERT_EQ(hipEventRecord(event, rival_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(stream_, event, 0), hipSuccess);
  instance_.Fake<decltype(FakeCapture)>("FakeCapture")(stream_, 1);
  EXPECT_TRUE(QueueOf(KeyOf(stream_))->Idle());
  EXPECT_EQ(StateOf(stream_), kQueueStateReady);
  EXPECT_EQ(instance_.Fake<decltype(FakeCapture)>("FakeCapture")(stream_, 0), hipSuccess);
  hipStreamEndCapture(rival_, nullptr);
  instance_.Finish(stream_, 2);
}

// The program has recorded it before the capture, and its stream captures now.
TEST_F(HipCapture, a_wait_for_an_event_of_the_program_does_not_spoil_it) {
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreateWithFlags(&event, 0), hipSuccess);
  ASSERT_EQ(hipEventRecord(event, stream_), hipSuccess);
  ASSERT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(rival_, event, 0), hipSuccess);
  EXPECT_EQ(hipStreamEndCapture(stream_, nullptr), hipSuccess);
  instance_.Finish(stream_, 2);
}

TEST(HipShim, a_stream_that_is_destroyed_takes_its_queue_with_it) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  instance.Finish(stream, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  ASSERT_NE(QueueOf(KeyOf(stream)), nullptr);
  EXPECT_EQ(instance.Library("LibraryDestroyStream", stream), hipSuccess);
  EXPECT_EQ(QueueOf(KeyOf(stream)), nullptr);
}

// In the runtime's own destructor its stream goes, and an event of it must not be asked about any more.
TEST(HipShim, a_thread_that_ends_takes_its_default_stream_along_before_the_runtime_does) {
  RuntimeInstance instance;
  hipStream_t rival = instance.NewStream();
  instance.Library("LibrarySet", rival);
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  // So the scheduler has to know how far the other queues are.
  ASSERT_EQ(XHintPriority(HandleOf(instance, rival), -1), kXSchedSuccess);
  const auto events = instance.Fake<decltype(FakeEvents)>("FakeEvents");
  std::thread launching([&] {
    // Until a marker is behind one.
    const int before = events();
    for (int i = 0; i < 1000 && events() == before; ++i) {
      EXPECT_EQ(instance.Library("LibrarySet", kHipStreamPerThread), hipSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      instance.Finish(kHipStreamPerThread, 1);
    }
    EXPECT_NE(events(), before);
  });
  launching.join();
  EXPECT_EQ(instance.Fake<decltype(FakeOrphans)>("FakeOrphans")(), 0);
  instance.Finish(rival, 1);
  EXPECT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
}

TEST(HipShim, a_reset_takes_all_queues_of_the_device) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  instance.Library("LibrarySet", hipStream_t{});
  instance.Finish(stream, 1);
  instance.Finish(nullptr, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(QueueOf(KeyOf(stream)), nullptr);
  EXPECT_EQ(QueueOf(instance.NullKey()), nullptr);
}

TEST(HipShim, a_function_that_returns_nothing_counts) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  hipLaunchKernelGGLImpl_cxx(0, nullptr, nullptr, 0, stream, nullptr);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

// ---- held queues ----

TEST(HipShim, a_held_stream_holds_its_next_launch_and_no_wait) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  XQueueHandle queue = HandleOf(instance, stream);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  std::atomic<bool> launched{false};
  std::thread launching([&] {
    instance.Library("LibrarySet", stream);
    launched = true;
  });
  // None of these waits for what is not in the runtime yet.
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipModuleUnload(nullptr), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  instance.Finish(stream, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(instance.Launched(stream), 1u);
  EXPECT_FALSE(launched);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  launching.join();
  EXPECT_EQ(instance.Launched(stream), 2u);
}

// The thread may have locks that threads of more urgent streams need.
TEST(HipShim, what_takes_no_time_of_the_device_is_counted_and_not_held) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  hipStream_t other = instance.NewStream();
  hipEvent_t event = nullptr;
  instance.Library("LibrarySet", stream);
  instance.Library("LibrarySet", other);
  ASSERT_EQ(hipEventCreateWithFlags(&event, 0), hipSuccess);
  ASSERT_EQ(hipEventRecord(event, other), hipSuccess);
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  EXPECT_EQ(XHintPriority(HandleOf(instance, other), 1), kXSchedSuccess);
  ASSERT_EQ(XQueueSuspend(HandleOf(instance, stream), kQueueSuspendFlagNone), kXSchedSuccess);
  void* memory = nullptr;
  EXPECT_EQ(hipMallocAsync(&memory, 1, stream), hipSuccess);
  EXPECT_EQ(hipMallocFromPoolAsync(&memory, 1, nullptr, stream), hipSuccess);
  EXPECT_EQ(hipFreeAsync(memory, stream), hipSuccess);
  EXPECT_EQ(hipLaunchHostFunc(stream, nullptr, nullptr), hipSuccess);
  EXPECT_EQ(hipStreamAddCallback(stream, nullptr, nullptr, 0), hipSuccess);
  EXPECT_EQ(hipStreamWriteValue32(stream, nullptr, 0, 0), hipSuccess);
  EXPECT_EQ(hipStreamWriteValue64(stream, nullptr, 0, 0), hipSuccess);
  hipStreamBatchMemOpParams writes[] = {{kHipStreamMemOpWriteValue32, {}}, {kHipStreamMemOpWriteValue64, {}}};
  EXPECT_EQ(hipStreamBatchMemOp(stream, 2, writes, 0), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(stream, event, 0), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(stream)), 10u);
  std::atomic<bool> launched{false};
  std::thread launching([&] {
    instance.Library("LibrarySet", stream);
    launched = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(launched);
  ASSERT_EQ(XQueueResume(HandleOf(instance, stream), kQueueResumeFlagNone), kXSchedSuccess);
  instance.Finish(stream, 9);
  instance.Finish(other, 1);
  launching.join();
  EXPECT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
}

TEST(HipShim, memory_operations_are_held_if_one_of_them_waits) {
  RuntimeInstance instance;
  hipStream_t stream = instance.NewStream();
  instance.Library("LibrarySet", stream);
  ASSERT_EQ(XQueueSuspend(HandleOf(instance, stream), kQueueSuspendFlagNone), kXSchedSuccess);
  std::atomic<bool> launched{false};
  std::thread launching([&] {
    hipStreamBatchMemOpParams operations[] = {{kHipStreamMemOpWriteValue32, {}}, {/*wait=*/1, {}}};
    EXPECT_EQ(hipStreamBatchMemOp(stream, 2, operations, 0), hipSuccess);
    launched = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(launched);
  ASSERT_EQ(XQueueResume(HandleOf(instance, stream), kQueueResumeFlagNone), kXSchedSuccess);
  launching.join();
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

// ---- looked-up functions ----

TEST(HipShim, a_function_looked_up_in_an_instance_goes_to_that_instance) {
  RuntimeInstance a, b;
  using Set = hipError_t(void*, int, size_t, hipStream_t);
  auto* in_a = reinterpret_cast<Set*>(dlsym(a.handle(), "hipMemsetAsync"));
  auto* in_b = reinterpret_cast<Set*>(dlsym(b.handle(), "hipMemsetAsync"));
  EXPECT_NE(in_a, in_b);
  EXPECT_NE(in_b, b.Exported<Set>("hipMemsetAsync"));
  EXPECT_EQ(in_b(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 0);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(Commands(b.NullKey()), 1u);
}

// As programs do who look for whatever the process has.
TEST(HipShim, a_function_looked_up_in_the_default_scope_goes_to_the_callers_instance) {
  RuntimeInstance a, b;
  auto* set = reinterpret_cast<hipError_t (*)(void*, int, size_t, hipStream_t)>(
      dlsym(RTLD_DEFAULT, "hipMemsetAsync"));
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 1) << "linked to none: the first";
  EXPECT_EQ(Commands(a.NullKey()), 1u);
}

// The program's own handle stands for the global scope, which begins with the shim.
TEST(HipShim, a_function_looked_up_in_the_program_is_there_if_a_runtime_is) {
  void* program = dlopen(nullptr, RTLD_LAZY);
  RuntimeInstance local;
  EXPECT_EQ(dlsym(program, "hipMemsetAsync"), nullptr);
  RuntimeInstance global(RTLD_GLOBAL);
  auto* set =
      reinterpret_cast<hipError_t (*)(void*, int, size_t, hipStream_t)>(dlsym(program, "hipMemsetAsync"));
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(global.Launched(nullptr), 1u);
  EXPECT_EQ(Commands(global.NullKey()), 1u);
}

// An interposer's way to the next function: it keeps its meaning.
TEST(HipShim, what_comes_next_is_what_comes_next) {
  RuntimeInstance a(RTLD_GLOBAL);
  void* next = dlsym(RTLD_NEXT, "hipMemsetAsync");
  EXPECT_EQ(next, reinterpret_cast<void*>(&hipMemsetAsync)) << "the shim's own comes after this program";
}

TEST(HipShim, what_is_not_wrapped_is_found_as_it_is) {
  RuntimeInstance instance;
  void* found = dlsym(instance.handle(), "hipGetDeviceCount");
  EXPECT_EQ(found, instance.Exported<void>("hipGetDeviceCount"));
  EXPECT_EQ(dlsym(instance.handle(), "hipNoSuchFunction"), nullptr);
}

TEST(HipShim, hipGetProcAddress_gives_wrappers_of_its_instance) {
  RuntimeInstance a, b;
  auto* get = reinterpret_cast<decltype(&hipGetProcAddress)>(dlsym(b.handle(), "hipGetProcAddress"));
  void* found = nullptr;
  ASSERT_EQ(get("hipMemsetAsync", &found, 60400, 0, nullptr), hipSuccess);
  EXPECT_EQ(reinterpret_cast<decltype(&hipMemsetAsync)>(found)(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(Commands(b.NullKey()), 1u);
}

TEST(HipShim, hipGetProcAddress_gives_the_per_thread_variant_where_it_is_asked_for) {
  RuntimeInstance instance;
  void* found = nullptr;
  ASSERT_EQ(hipGetProcAddress("hipMemsetAsync", &found, 60400, 2, nullptr), hipSuccess);
  EXPECT_EQ(reinterpret_cast<decltype(&hipMemsetAsync)>(found)(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(instance.CallsOf("hipMemsetAsync_spt"), 1);
  EXPECT_EQ(Commands(instance.NullKey()), 0u) << "not the device's own null stream";
}

}  // namespace
}  // namespace xsched::hip
