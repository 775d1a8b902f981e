// A program with one context, as the shim sees it. Functions have their exported names (cu.h).
#pragma once

#include <gtest/gtest.h>

#include "hal/cuda/driver.h"
#include "hal/cuda/queue.h"
#include "hal/cuda/stream_key.h"
#include "preempt/api/launch.h"
#include "xsched/xsched.h"

namespace xsched::cuda {

constexpr size_t kCount = 256;

class CudaProgram : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc_v2(&memory_, kCount * sizeof(int)), CUDA_SUCCESS);
  }

  static CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  static uint64_t KeyOf(CUstream stream) { return reinterpret_cast<uint64_t>(stream); }
  uint64_t LegacyKey() const { return LegacyStreamKey(reinterpret_cast<uint64_t>(context_)); }
  // The key of a per-thread default stream that has an XQueue, other than `known`; 0: there is none.
  uint64_t PerThreadKey(uint64_t known = 0) const {
    for (uint64_t thread = 1; thread < 64; ++thread) {
      uint64_t key = PerThreadStreamKey(reinterpret_cast<uint64_t>(context_), thread);
      if (key != known && preempt::FindXQueue(kPlatformCUDA, key) != nullptr) return key;
    }
    return 0;
  }

  // Launches the simplest command.
  CUresult Launch(CUstream stream) const { return cuMemsetD32Async(memory_, 1, kCount, stream); }

  static bool HasQueue(uint64_t key) { return preempt::FindXQueue(kPlatformCUDA, key) != nullptr; }
  static uint64_t Commands(uint64_t key) {
    preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, key);
    return queue == nullptr ? 0 : preempt::SubmittedNow(queue);
  }
  // The handle of the XQueue that the shim has made; 0: none.
  XQueueHandle QueueOf(CUstream stream, uint64_t key) const {
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    EXPECT_EQ(CudaQueueRegister(FindDriver(), context_, stream, key, &hwq), kXSchedErrorNotAllowed);
    EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
    return queue;
  }
  XQueueState StateOf(CUstream stream) const {
    XQueueState state = kQueueStateUnknown;
    EXPECT_EQ(XQueueQuery(QueueOf(stream, KeyOf(stream)), &state), kXSchedSuccess);
    return state;
  }

  CUcontext context_ = nullptr;
  CUdeviceptr memory_ = 0;
};

}  // namespace xsched::cuda
