// Under XSched, what belongs to one runtime instance reaches that instance. native_test.cc shows what
// happens without.
#include <string>
#include <thread>
#include <vector>

#include "held.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_instances.h"
#include "xsched/hip/hal.h"

namespace xsched::hip {
namespace {

class Scheduled : public TwoInstances {
 protected:
  // What the kernels leave, as a program reads it.
  std::vector<float> Read(int index) {
    std::vector<float> values(kFloats);
    EXPECT_EQ(PROGRAM(ProgramRead)(values.data(), Matrix(index), kFloats * sizeof(float)), hipSuccess);
    return values;
  }
};

TEST_F(Scheduled, random_numbers_are_filled_in_by_a_kernel_of_the_programs_own) {
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(0), kFloats, 1));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  const std::vector<float> values = Read(0);
  EXPECT_NE(values[0], values[1]);
}

TEST_F(Scheduled, a_matrix_product_is_launched_as_rocblas_launches_it) {
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(0), kFloats, 1));
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(1), kFloats, 2));
  SUCCEEDS(PROGRAM(ProgramMatmul)(stream_, Matrix(2), Matrix(0), Matrix(1), 16, 16, 16));
  EXPECT_EQ(Commands(KeyOf(stream_)), 3u);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  const std::vector<float> a = Read(0), b = Read(1), c = Read(2);
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += a[16 + k] * b[k * 16 + 2];
  EXPECT_FLOAT_EQ(c[16 + 2], sum);
}

TEST_F(Scheduled, a_convolution_is_launched_as_miopen_launches_it) {
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(0), kFloats, 1));
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(1), 3, 2));
  SUCCEEDS(PROGRAM(ProgramConvolve)(stream_, Matrix(2), Matrix(0), Matrix(1), kFloats - 2, 3));
  EXPECT_EQ(Commands(KeyOf(stream_)), 3u);
  const std::vector<float> x = Read(0), w = Read(1), y = Read(2);
  EXPECT_FLOAT_EQ(y[5], x[5] * w[0] + x[6] * w[1] + x[7] * w[2]);
}

TEST_F(Scheduled, a_stream_of_either_instance_gets_a_hardware_queue) {
  HwQueueHandle hwq = 0;
  EXPECT_EQ(HipQueueCreate(&hwq, stream_), kXSchedSuccess);
  EXPECT_NE(hwq, 0u);
  hipStream_t other = nullptr;
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  EXPECT_EQ(HipQueueCreate(&hwq, other), kXSchedSuccess);
}

TEST_F(Scheduled, programs_of_both_instances_work_side_by_side) {
  constexpr int kLaunches = 100;
  hipStream_t other = nullptr;
  void* memory = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&other));
  SUCCEEDS(OTHER(ProgramMemory)(&memory, 2 * (kLaunches + 1) * sizeof(int)));
  int* const logs[] = {static_cast<int*>(memory), static_cast<int*>(memory) + kLaunches + 1};
  std::thread program([&] {
    for (int i = 0; i < kLaunches; ++i) SUCCEEDS(PROGRAM(ProgramAppend)(stream_, logs[0], i));
    SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  });
  for (int i = 0; i < kLaunches; ++i) SUCCEEDS(OTHER(ProgramAppend)(other, logs[1], i));
  SUCCEEDS(OTHER(ProgramSynchronize)(other));
  program.join();
  EXPECT_EQ(Commands(KeyOf(stream_)), static_cast<uint64_t>(kLaunches));
  EXPECT_EQ(Commands(KeyOf(other)), static_cast<uint64_t>(kLaunches));
  // Everything has run, in its stream's order.
  std::vector<int> expected{kLaunches}, found(kLaunches + 1);
  for (int i = 0; i < kLaunches; ++i) expected.push_back(i);
  for (const int* log : logs) {
    SUCCEEDS(OTHER(ProgramRead)(found.data(), log, found.size() * sizeof(int)));
    EXPECT_EQ(found, expected);
  }
}

// A pool's handle means nothing to the other instance: asked about it, that one says that there is none, or
// ends the program.
class LimitedMemory : public Scheduled {
 protected:
  static constexpr size_t kMiB = 1 << 20;
  void SetUp() override {
    setenv("XSCHED_MEMORY", "100MiB", 1);  // read at the first allocation
    Scheduled::SetUp();
  }
};

TEST_F(LimitedMemory, that_one_instance_has_in_a_pool_counts_for_the_other) {
  const auto allocate =
      reinterpret_cast<hipError_t (*)(void**, size_t, hipStream_t)>(dlsym(installed_, "hipMallocAsync"));
  ASSERT_NE(allocate, nullptr);
  hipStream_t other = nullptr;
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  void* memory = nullptr;
  SUCCEEDS(allocate(&memory, 60 * kMiB, other));
  void* more = nullptr;
  EXPECT_EQ(PROGRAM(ProgramMemory)(&more, 50 * kMiB), hipErrorOutOfMemory);
  EXPECT_EQ(PROGRAM(ProgramMemory)(&more, 50 * kMiB), hipErrorOutOfMemory) << "although it was asked before";
  SUCCEEDS(PROGRAM(ProgramMemory)(&more, 30 * kMiB));
}

// The calls that a scheduler bound to the installed runtime made: 709 without XSched.
TEST_F(Scheduled, a_stream_that_is_used_through_the_other_instance_reaches_its_own) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  EXPECT_EQ(INSTALLED(hipStreamSynchronize)(stream_), hipSuccess);
  EXPECT_EQ(INSTALLED(hipStreamQuery)(stream_), hipSuccess);
}

// Of a function, of the null stream as well: 98 or worse without XSched.
TEST_F(Scheduled, a_kernel_that_is_launched_through_the_other_instance_reaches_its_own) {
  hipFunction_t function = nullptr;
  hipStream_t other = nullptr;
  int value = 7;
  void* arguments[] = {&log_, &value};
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  SUCCEEDS(PROGRAM(ProgramFunction)(&function, "append"));
  SUCCEEDS(INSTALLED(hipModuleLaunchKernel)(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  SUCCEEDS(INSTALLED(hipLaunchKernel)(PROGRAM(ProgramKernel)(), dim3(1), dim3(64), arguments, 0, nullptr));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  EXPECT_EQ(standin_hsa_dispatches("append"), 2u);
}

// Of a library as HIP has them since ROCm 7.1, where no header of Debian's has them.
class Libraries : public Scheduled {
 protected:
  using Library = void*;
  using Kernel = const void*;
  using LoadLibrary = hipError_t(Library*, const char*, void*, void**, unsigned, void*, void**, unsigned);
  using GetKernel = hipError_t(Kernel*, Library, const char*);
  using EnumerateKernels = hipError_t(Kernel*, unsigned, Library);
  using GetKernelName = hipError_t(const char**, Kernel);

  void SetUp() override {
    Scheduled::SetUp();
    auto* load = In<LoadLibrary>(installed_, "hipLibraryLoadFromFile");
    if (load == nullptr || In<EnumerateKernels>(installed_, "hipLibraryEnumerateKernels") == nullptr)
      GTEST_SKIP() << "this version of HIP has none";
    SUCCEEDS(load(&library_, TEST_CODE_OBJECT, nullptr, nullptr, 0, nullptr, nullptr, 0));
    SUCCEEDS(INSTALLED(hipStreamCreateWithFlags)(&other_, hipStreamNonBlocking));
    void* memory = nullptr;
    SUCCEEDS(In<hipError_t(void**, size_t)>(installed_, "hipMalloc")(&memory, 64 * sizeof(int)));
    SUCCEEDS(INSTALLED(hipMemsetAsync)(memory, 0, 64 * sizeof(int), other_));
    other_log_ = static_cast<int*>(memory);
  }

  template <typename Function>
  static Function* In(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  // It is launched once, on a stream that is scheduled.
  void IsLaunched(Kernel append) {
    int value = 7;
    void* arguments[] = {&other_log_, &value};
    const uint64_t before = Commands(KeyOf(other_));
    SUCCEEDS(INSTALLED(hipLaunchKernel)(append, dim3(1), dim3(64), arguments, 0, other_));
    EXPECT_EQ(Commands(KeyOf(other_)), before + 1);
    SUCCEEDS(INSTALLED(hipStreamSynchronize)(other_));
    EXPECT_EQ(standin_hsa_dispatches("append"), 1u);
  }

  Library library_ = nullptr;
  hipStream_t other_ = nullptr;
  int* other_log_ = nullptr;
};

TEST_F(Libraries, a_kernels_handle_is_launched_as_a_function_is) {
  Kernel kernel = nullptr;
  SUCCEEDS(In<GetKernel>(installed_, "hipLibraryGetKernel")(&kernel, library_, "append"));
  IsLaunched(kernel);
}

TEST_F(Libraries, a_kernel_that_is_enumerated_is_launched_as_a_function_is) {
  Kernel kernels[32] = {};
  SUCCEEDS(In<EnumerateKernels>(installed_, "hipLibraryEnumerateKernels")(kernels, 32, library_));
  auto* get_name = In<GetKernelName>(installed_, "hipKernelGetName");
  for (Kernel kernel : kernels) {
    const char* name = nullptr;
    if (kernel == nullptr || get_name(&name, kernel) != hipSuccess || std::string("append") != name) continue;
    IsLaunched(kernel);
    return;
  }
  FAIL() << "the library has no such kernel";
}

TEST_F(Scheduled, a_graph_that_is_launched_through_the_other_instance_runs_in_its_own) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  SUCCEEDS(INSTALLED(hipDeviceSynchronize)());
  SUCCEEDS(INSTALLED(hipStreamBeginCapture)(stream_, hipStreamCaptureModeRelaxed));
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  SUCCEEDS(INSTALLED(hipStreamEndCapture)(stream_, &graph));
  SUCCEEDS(INSTALLED(hipGraphInstantiate)(&exec, graph, nullptr, nullptr, 0));
  EXPECT_EQ(Commands(KeyOf(stream_)), 0u);
  SUCCEEDS(INSTALLED(hipGraphLaunch)(exec, stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(standin_hsa_dispatches("append"), 1u);
}

// NCCL asks like this before each launch. AMD's leaves what is in the graph's place.
TEST_F(Scheduled, a_stream_stays_its_instances_if_the_other_one_is_asked_what_it_captures) {
  hipStream_t other = nullptr;
  hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
  hipGraph_t graph = reinterpret_cast<hipGraph_t>(stream_);
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  SUCCEEDS(INSTALLED(hipStreamGetCaptureInfo_v2)(other, &status, nullptr, &graph, nullptr, nullptr));
  EXPECT_EQ(status, hipStreamCaptureStatusNone);
  EXPECT_EQ(graph, reinterpret_cast<hipGraph_t>(stream_));
  EXPECT_EQ(INSTALLED(hipGetStreamDeviceId)(stream_), 0);
}

TEST_F(Scheduled, a_node_that_is_being_captured_is_known_to_the_instance_of_its_stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* nodes = nullptr;
  size_t count = 0;
  hipGraphNodeType type{};  // its values are other ones from version to version
  SUCCEEDS(INSTALLED(hipDeviceSynchronize)());
  SUCCEEDS(INSTALLED(hipStreamBeginCapture)(stream_, hipStreamCaptureModeRelaxed));
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  SUCCEEDS(INSTALLED(hipStreamGetCaptureInfo_v2)(stream_, &status, nullptr, &graph, &nodes, &count));
  ASSERT_EQ(count, 1u);
  SUCCEEDS(INSTALLED(hipGraphNodeGetType)(nodes[0], &type));
  SUCCEEDS(INSTALLED(hipStreamEndCapture)(stream_, &graph));
}

TEST_F(Scheduled, each_instance_has_a_null_stream_of_its_own) {
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 1));
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 2));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  // The memory was set on it as well.
  EXPECT_GE(NullStreamCommands(), 2u);
  int log[3] = {};
  SUCCEEDS(PROGRAM(ProgramRead)(log, log_, sizeof log));
  EXPECT_EQ(log[0], 2);
  EXPECT_EQ(log[2], 2);
}

// Triton finds its functions in the instance that it asks. Nothing needs to be linked to that one.
TEST_F(Scheduled, a_function_that_is_looked_up_is_scheduled_in_the_instance_that_was_asked) {
  void* bundled = Load("TEST_BUNDLED_RUNTIME");
  ASSERT_NE(bundled, nullptr);
  auto launch = reinterpret_cast<decltype(&hipModuleLaunchKernel)>(dlsym(bundled, "hipModuleLaunchKernel"));
  hipFunction_t function = nullptr;
  SUCCEEDS(PROGRAM(ProgramFunction)(&function, "append"));
  int value = 7;
  void* arguments[] = {&log_, &value};
  SUCCEEDS(launch(function, 1, 1, 1, 64, 1, 1, 0, stream_, arguments, nullptr));
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(standin_hsa_dispatches("append"), 1u);
}

TEST_F(Scheduled, a_stream_is_held_and_goes_on_whatever_is_launched) {
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, Matrix(0), kFloats, 1));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  auto is_held = [this](const char* kernel, const std::function<hipError_t()>& launch) {
    SCOPED_TRACE(kernel);
    const uint64_t before = standin_hsa_dispatches(kernel);
    ExpectHeld(QueueOf(stream_), launch, [&] { return standin_hsa_dispatches(kernel) != before; });
    SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
    EXPECT_EQ(standin_hsa_dispatches(kernel), before + 1);
  };
  is_held("random_fill", [this] { return PROGRAM(ProgramRandomFill)(stream_, Matrix(1), kFloats, 2); });
  is_held("matmul",
          [this] { return PROGRAM(ProgramMatmul)(stream_, Matrix(2), Matrix(0), Matrix(1), 16, 16, 16); });
  is_held("convolve",
          [this] { return PROGRAM(ProgramConvolve)(stream_, Matrix(2), Matrix(0), Matrix(1), 200, 3); });
}

TEST_F(Scheduled, the_null_stream_of_an_instance_is_held_and_the_other_ones_is_not) {
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 1));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  // No caller here is linked to an instance: the call goes to the one that was loaded first.
  ExpectHeld(
      QueueOf(nullptr), [this] { return PROGRAM(ProgramAppend)(nullptr, log_, 2); },
      [this] {
        EXPECT_EQ(OTHER(ProgramSynchronize)(nullptr), hipSuccess);
        EXPECT_EQ(OTHER(ProgramRandomFill)(nullptr, Matrix(0), kFloats, 1), hipSuccess);
        EXPECT_EQ(OTHER(ProgramSynchronize)(nullptr), hipSuccess);
        EXPECT_EQ(standin_hsa_dispatches("random_fill"), 1u);
        return standin_hsa_dispatches("append") != 1;
      });
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  EXPECT_EQ(standin_hsa_dispatches("append"), 2u);
}

}  // namespace
}  // namespace xsched::hip
