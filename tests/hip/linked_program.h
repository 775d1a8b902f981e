// A program that is linked to the installed runtime, with a kernel that keeps a log.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "held.h"
#include "hip_api.h"
#include "kernels.h"
#include "queues.h"

namespace xsched::hip {

#define SUCCEEDS(call) ASSERT_EQ(call, hipSuccess)

class LinkedProgram : public testing::Test {
 protected:
  void SetUp() override { UseHip(); }
  void UseHip() {
    SUCCEEDS(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    // In host memory, because the tests read both where HIP must not be called.
    SUCCEEDS(hipHostMalloc(reinterpret_cast<void**>(&log_), kLogSize * sizeof(int), 0));
    SUCCEEDS(hipHostMalloc(reinterpret_cast<void**>(&word_), sizeof(int), 0));
    log_[0] = *word_ = 0;
  }

  hipError_t Append(hipStream_t stream, int value) const {
    LaunchAppend(stream, log_, value);
    return hipGetLastError();
  }
  // The values that were appended so far.
  std::vector<int> Log() const { return {log_ + 1, log_ + 1 + __atomic_load_n(log_, __ATOMIC_ACQUIRE)}; }

  static constexpr int kLogSize = 4096;
  hipStream_t stream_ = nullptr;
  int* log_ = nullptr;
  int* word_ = nullptr;
};

}  // namespace xsched::hip
