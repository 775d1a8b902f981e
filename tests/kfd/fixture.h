// What the tests of levels 2 and 3 share: streams that XSched has discovered, and the requests to the
// kernel's driver.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <string>
#include <thread>

#include "fake_kfd.h"
#include "hip_api.h"
#include "xsched/xsched.h"

extern "C" XResult HipQueueGet(HwQueueHandle* hwq, hipStream_t stream);

namespace xsched::hip {

#define SUCCEEDS(call) ASSERT_EQ(call, hipSuccess)

template <typename Condition>
bool Await(Condition&& condition) {
  for (int i = 0; i < 10'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return condition();
}

class LevelsFixture : public ::testing::Test {
 protected:
  // `level`: XSCHED_HIP_LEVEL; null: not set.
  static void Set(const char* level, const char* queues = nullptr) {
    if (level != nullptr) setenv("XSCHED_HIP_LEVEL", level, 1);
    if (queues == nullptr) return;
    setenv("GPU_MAX_HW_QUEUES", queues, 1);
    setenv("DEBUG_HIP_DYNAMIC_QUEUES", "0", 1);
  }
  void SetUp() override {
    setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
    setenv("XSCHED_SCHEDULER", "APP", 1);
    setenv("STANDIN_HSA_DEVICES", "2", 1);
  }

  // A stream that XSched has discovered, and the memory to fill on it.
  hipStream_t NewStream() {
    hipStream_t stream = nullptr;
    EXPECT_EQ(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    if (memory_ == nullptr) {
      EXPECT_EQ(hipMalloc(&memory_, 64), hipSuccess);
    }
    EXPECT_EQ(hipMemsetAsync(memory_, 1, 64, stream), hipSuccess);
    EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
    return stream;
  }
  void Launch(hipStream_t stream, int count) const {
    for (int i = 0; i < count; ++i) ASSERT_EQ(hipMemsetAsync(memory_, 1, 64, stream), hipSuccess);
  }
  static XQueueHandle QueueOf(hipStream_t stream) {
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    EXPECT_EQ(HipQueueGet(&hwq, stream), kXSchedSuccess);
    EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
    return queue;
  }
  // A queue gets the best level up to the one that is asked for.
  static bool HasLevel(XQueueHandle queue, XPreemptLevel level) {
    XPreemptLevel best = kPreemptLevelUnknown;
    EXPECT_EQ(XQueueSetPreemptLevel(queue, level), kXSchedSuccess);
    EXPECT_EQ(XQueueGetPreemptLevel(queue, &best), kXSchedSuccess);
    return best == level;
  }
  static void Suspend(XQueueHandle queue) { ASSERT_EQ(XQueueSuspend(queue, 0), kXSchedSuccess); }
  static void Resume(XQueueHandle queue) { ASSERT_EQ(XQueueResume(queue, 0), kXSchedSuccess); }
  static std::string Record() {
    char text[8192];
    fake_kfd_take_record(text, sizeof text);
    return text;
  }
  // Waits for a suspension since the last Record(). The record shows it even if it was short: nobody waits
  // forever for a process without progress.
  static bool AwaitSuspension() {
    std::string record;
    return Await([&record] { return (record += Record()).find(": 0 %,") != std::string::npos; });
  }
  static bool AllActive() { return fake_kfd_active_queues() == fake_kfd_queues(); }
  static bool NoneActive() { return fake_kfd_active_queues() == 0; }

  void* memory_ = nullptr;
};

}  // namespace xsched::hip
