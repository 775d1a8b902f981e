// Under XSched, what belongs to one copy of AMD's runtime reaches that copy. native_test.cc shows what
// happens without.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

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

TEST_F(Scheduled, both_copies_are_scheduled_side_by_side) {
  hipStream_t other = nullptr;
  SUCCEEDS(INSTALLED(hipStreamCreate)(&other));
  void* memory = nullptr;
  SUCCEEDS(INSTALLED(hipExtMallocWithFlags)(&memory, 64, hipDeviceMallocDefault));
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  SUCCEEDS(INSTALLED(hipMemsetAsync)(memory, 0, 64, other));
  SUCCEEDS(INSTALLED(hipMemsetAsync)(memory, 0, 64, other));
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  EXPECT_EQ(Commands(KeyOf(other)), 2u);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  SUCCEEDS(INSTALLED(hipStreamSynchronize)(other));
}

// The calls that a scheduler bound to the installed copy made: 709 without XSched.
TEST_F(Scheduled, a_stream_that_is_used_through_the_other_copy_reaches_its_own) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  EXPECT_EQ(INSTALLED(hipStreamSynchronize)(stream_), hipSuccess);
  EXPECT_EQ(INSTALLED(hipStreamQuery)(stream_), hipSuccess);
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

TEST_F(Scheduled, a_stream_is_held_and_goes_on) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  XQueueHandle queue = QueueOf(stream_);
  ASSERT_NE(queue, 0u);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  std::atomic<bool> returned{false};
  std::thread launcher([&] {
    EXPECT_EQ(PROGRAM(ProgramAppend)(stream_, log_, 2), hipSuccess);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(returned);
  EXPECT_EQ(standin_hsa_dispatches("append"), 1u);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  launcher.join();
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(standin_hsa_dispatches("append"), 2u);
}

}  // namespace
}  // namespace xsched::hip
