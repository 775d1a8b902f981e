// Streams of one process that are scheduled against each other by the local scheduler: those of one runtime
// instance, and those of two.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "held.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_instances.h"

namespace xsched::hip {
namespace {

// The same as `append` (tests/standin/hsa/kernels.h), but it takes a millisecond.
void AppendSlowly(const void* arguments, const void*) {
  int* const log = *static_cast<int* const*>(arguments);
  log[1 + __atomic_fetch_add(log, 1, __ATOMIC_ACQ_REL)] = static_cast<const int*>(arguments)[2];
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Priorities : public TwoInstances {
 protected:
  void SetUp() override {
    TwoInstances::SetUp();
    void* memory = nullptr;
    SUCCEEDS(PROGRAM(ProgramMemory)(&memory, kLogSize * sizeof(int)));
    log_ = static_cast<int*>(memory);
    standin_hsa_set_kernel("append", AppendSlowly);
  }

  static void SetPriority(hipStream_t stream, Priority priority) {
    XQueueHandle queue = QueueOf(stream);
    ASSERT_NE(queue, 0u);
    ASSERT_EQ(XHintPriority(queue, priority), kXSchedSuccess);
  }

  // The low stream appends 1 all the time, and the high one appends 2 thirty times. Returns how many of the
  // low one's kernels began between these.
  template <typename AppendLow, typename AppendHigh, typename Synchronize>
  ptrdiff_t LowOnesAmidHighOnes(AppendLow append_low, AppendHigh append_high, Synchronize synchronize_high) {
    log_[0] = 0;
    std::atomic<bool> stop{false};
    std::thread low([&] {
      while (!stop) EXPECT_EQ(append_low(), hipSuccess);
    });
    EXPECT_TRUE(WaitUntil([this] { return Entries() > 20; }));
    for (int i = 0; i < 30; ++i) EXPECT_EQ(append_high(), hipSuccess);
    EXPECT_EQ(synchronize_high(), hipSuccess);
    const int so_far = Entries();
    // Then the low one goes on.
    EXPECT_TRUE(WaitUntil([&] { return Entries() > so_far + 10; }));
    stop = true;
    low.join();
    const int *begin = log_ + 1, *end = begin + so_far;
    const int* first = std::find(begin, end, 2);
    const int* last = std::find(std::reverse_iterator(end), std::reverse_iterator(first), 2).base();
    EXPECT_EQ(std::count(first, last, 2), 30);
    return std::count(first, last, 1);
  }
  int Entries() const { return __atomic_load_n(log_, __ATOMIC_ACQUIRE); }

  // A busy machine may stop one of them for a while.
  template <typename... Functions>
  void HighGoesFirst(Functions... functions) {
    ptrdiff_t fewest = 30;
    for (int i = 0; i < 5 && fewest > 10; ++i) fewest = std::min(fewest, LowOnesAmidHighOnes(functions...));
    EXPECT_LE(fewest, 10);
  }

  static constexpr int kLogSize = 1 << 20;
};

TEST_F(Priorities, without_a_difference_streams_run_side_by_side) {
  hipStream_t other = nullptr;
  SUCCEEDS(PROGRAM(ProgramStream)(&other));
  SUCCEEDS(PROGRAM(ProgramAppend)(other, log_, 0));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(other));
  const auto amid = LowOnesAmidHighOnes([&] { return PROGRAM(ProgramAppend)(stream_, log_, 1); },
                                        [&] { return PROGRAM(ProgramAppend)(other, log_, 2); },
                                        [&] { return PROGRAM(ProgramSynchronize)(other); });
  EXPECT_GT(amid, 10);
}

TEST_F(Priorities, a_more_urgent_stream_goes_first) {
  hipStream_t high = nullptr;
  SUCCEEDS(PROGRAM(ProgramStream)(&high));
  for (hipStream_t stream : {stream_, high}) {
    SUCCEEDS(PROGRAM(ProgramAppend)(stream, log_, 0));
    SUCCEEDS(PROGRAM(ProgramSynchronize)(stream));
  }
  SetPriority(high, 5);
  HighGoesFirst([&] { return PROGRAM(ProgramAppend)(stream_, log_, 1); },
                [&] { return PROGRAM(ProgramAppend)(high, log_, 2); },
                [&] { return PROGRAM(ProgramSynchronize)(high); });
}

TEST_F(Priorities, a_more_urgent_stream_of_another_runtime_instance_goes_first) {
  hipStream_t high = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&high));
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 0));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  SUCCEEDS(OTHER(ProgramAppend)(high, log_, 0));
  SUCCEEDS(OTHER(ProgramSynchronize)(high));
  SetPriority(high, 5);
  HighGoesFirst([&] { return PROGRAM(ProgramAppend)(stream_, log_, 1); },
                [&] { return OTHER(ProgramAppend)(high, log_, 2); },
                [&] { return OTHER(ProgramSynchronize)(high); });
}

TEST_F(Priorities, a_more_urgent_stream_goes_before_the_null_stream) {
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 0));
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 0));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(nullptr));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  SetPriority(stream_, 5);
  HighGoesFirst([&] { return PROGRAM(ProgramAppend)(nullptr, log_, 1); },
                [&] { return PROGRAM(ProgramAppend)(stream_, log_, 2); },
                [&] { return PROGRAM(ProgramSynchronize)(stream_); });
}

}  // namespace
}  // namespace xsched::hip
