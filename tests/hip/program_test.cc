// A program that is linked to AMD's runtime, as most are: whatever it puts on its streams is counted, can be
// held, and is done as without XSched.
#include <dlfcn.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <hip/hip_ext.h>

#include "kernels.h"
#include "linked_program.h"

namespace xsched::hip {
namespace {

class Program : public LinkedProgram {
 protected:
  struct Work {
    const char* name;
    std::function<hipError_t(int value)> launch;
  };

  void SetUp() override {
    LinkedProgram::SetUp();
    SUCCEEDS(hipModuleLoad(&module_, TEST_CODE_OBJECT));
    SUCCEEDS(hipModuleGetFunction(&append_, module_, "append"));
    // The stream has its queue from now on.
    SUCCEEDS(Append(stream_, 0));
    SUCCEEDS(hipStreamSynchronize(stream_));
  }

  // All ways to append a value to the log by a kernel.
  std::vector<Work> Launches() {
    return {
        {"kernel<<<…>>>", [this](int value) { return Append(stream_, value); }},
        {"hipLaunchKernel",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           return hipLaunchKernel(kKernelAppend, dim3(1), dim3(64), arguments, 0, stream_);
         }},
        {"hipExtLaunchKernel",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           return hipExtLaunchKernel(kKernelAppend, dim3(1), dim3(64), arguments, 0, stream_, nullptr,
                                     nullptr, 0);
         }},
        {"hipModuleLaunchKernel",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           return hipModuleLaunchKernel(append_, 1, 1, 1, 64, 1, 1, 0, stream_, arguments, nullptr);
         }},
        {"hipModuleLaunchKernel, arguments in one buffer",
         [this](int value) {
           struct {
             int* log;
             int value;
           } buffer = {log_, value};
           size_t size = sizeof buffer;
           void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                            HIP_LAUNCH_PARAM_END};
           return hipModuleLaunchKernel(append_, 1, 1, 1, 64, 1, 1, 0, stream_, nullptr, extra);
         }},
        {"hipExtModuleLaunchKernel",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           return hipExtModuleLaunchKernel(append_, 64, 1, 1, 64, 1, 1, 0, stream_, arguments, nullptr);
         }},
        {"hipLaunchCooperativeKernel",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           return hipLaunchCooperativeKernel(kKernelAppend, dim3(1), dim3(64), arguments, 0, stream_);
         }},
        {"hipLaunchCooperativeKernelMultiDevice",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           hipLaunchParams launch{const_cast<void*>(kKernelAppend), dim3(1), dim3(64), arguments, 0, stream_};
           return hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0);
         }},
        {"hipExtLaunchMultiKernelMultiDevice",
         [this](int value) {
           void* arguments[] = {&log_, &value};
           hipLaunchParams launch{const_cast<void*>(kKernelAppend), dim3(1), dim3(64), arguments, 0, stream_};
           return hipExtLaunchMultiKernelMultiDevice(&launch, 1, 0);
         }},
        {"hipConfigureCall",
         [this](int value) {
           hipError_t error = hipConfigureCall(dim3(1), dim3(64), 0, stream_);
           if (error == hipSuccess) error = hipSetupArgument(&log_, sizeof log_, 0);
           if (error == hipSuccess) error = hipSetupArgument(&value, sizeof value, sizeof log_);
           return error == hipSuccess ? hipLaunchByPtr(kKernelAppend) : error;
         }},
        {"hipGraphLaunch", [this](int value) { return hipGraphLaunch(AppendGraph(value), stream_); }},
    };
  }

  hipGraphExec_t AppendGraph(int value) {
    if (graphs_.size() <= static_cast<size_t>(value)) graphs_.resize(value + 1);
    if (graphs_[value] != nullptr) return graphs_[value];
    hipGraph_t graph = nullptr;
    hipGraphNode_t node = nullptr;
    void* arguments[] = {&log_, &value};
    hipKernelNodeParams kernel{};
    kernel.func = const_cast<void*>(kKernelAppend);
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(64);
    kernel.kernelParams = arguments;
    EXPECT_EQ(hipGraphCreate(&graph, 0), hipSuccess);
    EXPECT_EQ(hipGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), hipSuccess);
    EXPECT_EQ(hipGraphInstantiate(&graphs_[value], graph, nullptr, nullptr, 0), hipSuccess);
    return graphs_[value];
  }

  // `work` writes something else than 0 to *word_.
  void IsHeldAsOneCommand(const Work& work) {
    SCOPED_TRACE(work.name);
    *word_ = 0;
    const uint64_t before = Commands(KeyOf(stream_));
    ExpectHeld(
        QueueOf(stream_), [&] { return work.launch(1); }, [this] { return *word_ != 0; });
    EXPECT_EQ(Commands(KeyOf(stream_)), before + 1);
    SUCCEEDS(hipStreamSynchronize(stream_));
    EXPECT_NE(*word_, 0);
  }

  hipModule_t module_ = nullptr;
  hipFunction_t append_ = nullptr;
  std::vector<hipGraphExec_t> graphs_;
};

TEST_F(Program, a_kernel_is_one_command_however_it_is_launched) {
  std::vector<int> expected = Log();
  for (const Work& work : Launches()) {
    SCOPED_TRACE(work.name);
    const int value = static_cast<int>(expected.size());
    const uint64_t before = Commands(KeyOf(stream_));
    SUCCEEDS(work.launch(value));
    EXPECT_EQ(Commands(KeyOf(stream_)), before + 1);
    expected.push_back(value);
  }
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Log(), expected);
}

TEST_F(Program, a_kernel_is_held_however_it_is_launched) {
  for (const Work& work : Launches()) {
    SCOPED_TRACE(work.name);
    const size_t entries = Log().size();
    AppendGraph(7);
    ExpectHeld(
        QueueOf(stream_), [&] { return work.launch(7); }, [&] { return Log().size() != entries; });
    SUCCEEDS(hipStreamSynchronize(stream_));
    EXPECT_EQ(Log().size(), entries + 1);
    EXPECT_EQ(Log().back(), 7);
  }
}

TEST_F(Program, copies_and_sets_are_held_as_well) {
  int one = 1;
  IsHeldAsOneCommand(
      {"hipMemsetAsync", [this](int value) { return hipMemsetAsync(word_, value, sizeof *word_, stream_); }});
  IsHeldAsOneCommand(
      {"hipMemsetD32Async", [this](int value) { return hipMemsetD32Async(word_, value, 1, stream_); }});
  IsHeldAsOneCommand({"hipMemcpyAsync", [&](int) {
                        return hipMemcpyAsync(word_, &one, sizeof one, hipMemcpyHostToDevice, stream_);
                      }});
  IsHeldAsOneCommand({"hipMemcpyWithStream", [&](int) {
                        return hipMemcpyWithStream(word_, &one, sizeof one, hipMemcpyHostToDevice, stream_);
                      }});
  IsHeldAsOneCommand({"hipMemcpy2DAsync", [&](int) {
                        return hipMemcpy2DAsync(word_, 4, &one, 4, 4, 1, hipMemcpyHostToDevice, stream_);
                      }});
}

// They tell others that earlier work is done, which must not come late.
TEST_F(Program, host_functions_and_written_words_are_not_held) {
  ASSERT_EQ(XQueueSuspend(QueueOf(stream_), kQueueSuspendFlagNone), kXSchedSuccess);
  const uint64_t before = Commands(KeyOf(stream_));
  uint64_t calls = 0;
#if HIP_VERSION_MAJOR >= 6  // declared before, but not there
  SUCCEEDS(hipLaunchHostFunc(
      stream_, [](void* word) { *static_cast<int*>(word) = 1; }, word_));
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(*word_, 1);
  ++calls;
#endif
  auto callback = [](hipStream_t, hipError_t, void* word) { *static_cast<int*>(word) = 2; };
  SUCCEEDS(hipStreamAddCallback(stream_, callback, word_, 0));
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(*word_, 2);
  EXPECT_EQ(Commands(KeyOf(stream_)), before + calls + 1);
  ASSERT_EQ(XQueueResume(QueueOf(stream_), kQueueResumeFlagNone), kXSchedSuccess);
}

TEST_F(Program, the_null_stream_is_held_and_goes_on) {
  SUCCEEDS(Append(nullptr, 1));
  SUCCEEDS(hipStreamSynchronize(nullptr));
  ExpectHeld(
      QueueOf(nullptr), [this] { return Append(nullptr, 2); }, [this] { return Log().back() == 2; });
  // Without a stream as well, and copies that wait.
  const int three = 3;
  ExpectHeld(
      QueueOf(nullptr), [&] { return hipMemcpy(word_, &three, sizeof three, hipMemcpyHostToDevice); },
      [this] { return *word_ == 3; });
  EXPECT_EQ(*word_, 3);
  SUCCEEDS(hipDeviceSynchronize());
  EXPECT_EQ(Log(), (std::vector{0, 1, 2}));
}

TEST_F(Program, each_device_has_a_null_stream_of_its_own) {
  const uint64_t before = NullStreamCommands(0);
  SUCCEEDS(hipSetDevice(1));
  SUCCEEDS(hipMemsetAsync(word_, 1, sizeof *word_, nullptr));
  SUCCEEDS(hipDeviceSynchronize());
  EXPECT_EQ(NullStreamCommands(1), 1u);
  EXPECT_EQ(NullStreamCommands(0), before);
}

TEST_F(Program, each_thread_has_a_default_stream_of_its_own) {
  for (uint64_t i = 0; i < 2; ++i) {
    std::thread([this] {
      SUCCEEDS(Append(hipStreamPerThread, 1));
      SUCCEEDS(hipStreamSynchronize(hipStreamPerThread));
      // Those of threads that have ended are gone.
      EXPECT_EQ(PerThreadStreamCommands(), 1u);
    }).join();
  }
  EXPECT_EQ(Log().size(), 3u);
}

// What a program calls that is compiled for the thread's own default stream.
TEST_F(Program, a_function_for_the_threads_own_default_stream_is_scheduled_there) {
  auto launch = reinterpret_cast<decltype(&hipLaunchKernel)>(dlsym(RTLD_DEFAULT, "hipLaunchKernel_spt"));
  ASSERT_NE(launch, nullptr);
  int value = 1;
  void* arguments[] = {&log_, &value};
  SUCCEEDS(launch(kKernelAppend, dim3(1), dim3(64), arguments, 0, nullptr));
  EXPECT_EQ(PerThreadStreamCommands(), 1u);
  SUCCEEDS(hipStreamSynchronize(hipStreamPerThread));
  EXPECT_EQ(Log().back(), 1);
}

#if HIP_VERSION >= 60100000
TEST_F(Program, a_function_that_the_runtime_looks_up_is_scheduled) {
  void* found = nullptr;
  hipDriverProcAddressQueryResult status;
  SUCCEEDS(hipGetProcAddress("hipLaunchKernel", &found, 601, 0, &status));
  auto launch = reinterpret_cast<decltype(&hipLaunchKernel)>(found);
  int value = 1;
  void* arguments[] = {&log_, &value};
  const uint64_t before = Commands(KeyOf(stream_));
  SUCCEEDS(launch(kKernelAppend, dim3(1), dim3(64), arguments, 0, stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), before + 1);
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Log().back(), 1);
}
#endif

TEST_F(Program, what_is_captured_is_not_held_and_its_graph_is_one_command) {
  ASSERT_EQ(XQueueSuspend(QueueOf(stream_), kQueueSuspendFlagNone), kXSchedSuccess);
  hipGraph_t graph = nullptr;
  hipGraphExec_t executable = nullptr;
  SUCCEEDS(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal));
  // HIP 5 reads the arguments of a captured kernel later.
  int values[5];
  void* arguments[5][2];
  for (int i = 0; i < 5; ++i) {
    values[i] = i + 1;
    arguments[i][0] = &log_;
    arguments[i][1] = &values[i];
    SUCCEEDS(hipLaunchKernel(kKernelAppend, dim3(1), dim3(64), arguments[i], 0, stream_));
  }
  SUCCEEDS(hipStreamEndCapture(stream_, &graph));
  SUCCEEDS(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  ASSERT_EQ(XQueueResume(QueueOf(stream_), kQueueResumeFlagNone), kXSchedSuccess);
  const uint64_t before = Commands(KeyOf(stream_));
  ExpectHeld(
      QueueOf(stream_), [&] { return hipGraphLaunch(executable, stream_); },
      [this] { return Log().size() != 1; });
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), before + 1);
  EXPECT_EQ(Log(), (std::vector{0, 1, 2, 3, 4, 5}));
}

// The scheduler asks how far the null stream is, which made blocking streams wait for each other.
TEST_F(Program, the_null_stream_beside_a_rival_makes_no_other_streams_wait_for_each_other) {
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  hipStream_t stuck = nullptr;
  hipStream_t other = nullptr;
  SUCCEEDS(hipStreamCreate(&stuck));
  SUCCEEDS(hipStreamCreate(&other));
  SUCCEEDS(Append(nullptr, 1));
  ASSERT_EQ(XHintPriority(QueueOf(nullptr), 1), kXSchedSuccess);
  SUCCEEDS(Append(nullptr, 2));
  ASSERT_TRUE(WaitUntil([&] { return Log().size() == 3; }));
  int one = 1;
  void* arguments[] = {&word_, &one};
  SUCCEEDS(hipLaunchKernel(kKernelAwait, dim3(1), dim3(64), arguments, 0, stuck));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  SUCCEEDS(Append(other, 3));
  EXPECT_TRUE(WaitUntil([&] { return Log().size() == 4; }));
  __atomic_store_n(word_, 1, __ATOMIC_RELEASE);
  SUCCEEDS(hipDeviceSynchronize());
  EXPECT_EQ(Log(), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
}

// The scheduler asks how far the stream is, which would invalidate the capture with ROCm 6.2 to 7.1.
TEST_F(Program, a_capture_beside_a_rival_is_valid_although_earlier_work_still_runs) {
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  hipStream_t rival = nullptr;
  SUCCEEDS(hipStreamCreateWithFlags(&rival, hipStreamNonBlocking));
  SUCCEEDS(Append(rival, 1));
  SUCCEEDS(hipStreamSynchronize(rival));
  ASSERT_EQ(XHintPriority(QueueOf(stream_), 1), kXSchedSuccess);
  int one = 1;
  void* arguments[] = {&word_, &one};
  SUCCEEDS(hipLaunchKernel(kKernelAwait, dim3(1), dim3(64), arguments, 0, stream_));
  for (int value = 2; value < 5; ++value) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    SUCCEEDS(Append(stream_, value));
  }
  hipGraph_t graph = nullptr;
  SUCCEEDS(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal));
  for (int i = 0; i < 10; ++i) {
    XQueueState state = kQueueStateUnknown;
    EXPECT_EQ(XQueueQuery(QueueOf(stream_), &state), kXSchedSuccess);
    EXPECT_EQ(state, kQueueStateReady);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  __atomic_store_n(word_, 1, __ATOMIC_RELEASE);
  EXPECT_EQ(XQueueWaitAll(QueueOf(stream_)), kXSchedSuccess);
  EXPECT_EQ(Log(), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
}

// In AMD's runtime it does nothing.
TEST_F(Program, a_reset_of_the_primary_context_leaves_the_queues) {
  const XQueueHandle queue = QueueOf(stream_);
  SUCCEEDS(hipDevicePrimaryCtxReset(0));
  EXPECT_EQ(QueueOf(stream_), queue);
  ExpectHeld(
      queue, [this] { return Append(stream_, 1); }, [this] { return Log().size() != 1; });
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Log(), (std::vector{0, 1}));
}

TEST_F(Program, a_stream_waits_for_another_ones_event) {
  hipStream_t other = nullptr;
  hipEvent_t event = nullptr;
  SUCCEEDS(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  SUCCEEDS(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  int one = 1;
  void* arguments[] = {&word_, &one};
  SUCCEEDS(hipLaunchKernel(kKernelAwait, dim3(1), dim3(64), arguments, 0, stream_));
  SUCCEEDS(Append(stream_, 1));
  SUCCEEDS(hipEventRecord(event, stream_));
  SUCCEEDS(hipStreamWaitEvent(other, event, 0));
  SUCCEEDS(Append(other, 2));
  EXPECT_EQ(hipStreamQuery(other), hipErrorNotReady);
  EXPECT_EQ(hipEventQuery(event), hipErrorNotReady);
  __atomic_store_n(word_, 1, __ATOMIC_RELEASE);
  SUCCEEDS(hipStreamSynchronize(other));
  EXPECT_EQ(hipEventQuery(event), hipSuccess);
  EXPECT_EQ(Log(), (std::vector{0, 1, 2}));
}

TEST_F(Program, threads_launch_side_by_side) {
  constexpr int kThreads = 4, kLaunches = 100;
  std::vector<hipStream_t> streams(kThreads);
  std::vector<int*> sums(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    SUCCEEDS(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
    SUCCEEDS(hipHostMalloc(reinterpret_cast<void**>(&sums[i]), sizeof(int), 0));
    *sums[i] = 0;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 1; n <= kLaunches; ++n) {
        void* arguments[] = {&sums[i], &n};
        SUCCEEDS(hipLaunchKernel(kKernelAdd, dim3(1), dim3(64), arguments, 0, streams[i]));
        if (n % 10 == 0) {
          SUCCEEDS(hipStreamSynchronize(streams[i]));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(Commands(KeyOf(streams[i])), static_cast<uint64_t>(kLaunches));
    EXPECT_EQ(*sums[i], kLaunches * (kLaunches + 1) / 2);
    SUCCEEDS(hipStreamDestroy(streams[i]));
    EXPECT_FALSE(HasQueue(KeyOf(streams[i])));
  }
}

TEST_F(Program, what_the_runtime_refuses_stays_refused) {
  int value = 1;
  void* arguments[] = {&log_, &value};
  const uint64_t before = Commands(KeyOf(stream_));
  int version = 0;
  SUCCEEDS(hipRuntimeGetVersion(&version));
  // ROCm 7.2 takes what it does not know for a handle.
  const void* kernel = version < 70200000 ? &value : nullptr;
  EXPECT_EQ(hipLaunchKernel(kernel, dim3(1), dim3(64), arguments, 0, stream_), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  EXPECT_EQ(hipMemcpyAsync(word_, nullptr, 4, hipMemcpyHostToDevice, stream_), hipErrorInvalidValue);
  // From ROCm 7 on it stays until it is asked for, as CUDA's does.
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidValue);
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_LE(Commands(KeyOf(stream_)), before + 2);
  SUCCEEDS(Append(stream_, 1));
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Log().back(), 1);
}

}  // namespace
}  // namespace xsched::hip
