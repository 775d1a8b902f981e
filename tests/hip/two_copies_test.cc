// Under XSched, what belongs to one copy of AMD's runtime reaches that copy. native_test.cc shows what
// happens without.
#include <thread>
#include <vector>

#include "held.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_copies.h"
#include "xsched/hip/hal.h"

namespace xsched::hip {
namespace {

class Scheduled : public TwoCopies {
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

TEST_F(Scheduled, a_stream_of_either_copy_gets_a_hardware_queue) {
  HwQueueHandle hwq = 0;
  EXPECT_EQ(HipQueueCreate(&hwq, stream_), kXSchedSuccess);
  EXPECT_NE(hwq, 0u);
  hipStream_t other = nullptr;
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  EXPECT_EQ(HipQueueCreate(&hwq, other), kXSchedSuccess);
}

TEST_F(Scheduled, programs_of_both_copies_work_side_by_side) {
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

// The calls that a scheduler bound to the installed copy made: 709 without XSched.
TEST_F(Scheduled, a_stream_that_is_used_through_the_other_copy_reaches_its_own) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  EXPECT_EQ(INSTALLED(hipStreamSynchronize)(stream_), hipSuccess);
  EXPECT_EQ(INSTALLED(hipStreamQuery)(stream_), hipSuccess);
}

// Of a function, of the null stream as well: 98 or worse without XSched.
TEST_F(Scheduled, a_kernel_that_is_launched_through_the_other_copy_reaches_its_own) {
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

TEST_F(Scheduled, a_graph_that_is_launched_through_the_other_copy_runs_in_its_own) {
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

TEST_F(Scheduled, the_null_stream_is_each_copys_own) {
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

// As Triton finds it: in the copy that it asks, which need not be one that anything is linked to.
TEST_F(Scheduled, a_function_that_is_looked_up_is_scheduled_in_the_copy_that_was_asked) {
  void* bundled = dlopen(TEST_BUNDLED_RUNTIME, RTLD_LAZY | RTLD_NOLOAD);
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

TEST_F(Scheduled, the_null_stream_of_a_copy_is_held_and_the_other_ones_is_not) {
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 1));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  // Nobody here is linked to a copy: it is that of the one that was loaded first.
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
