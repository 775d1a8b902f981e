// A program with two streams that the local scheduler schedules against each other.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "fixture.h"
#include "preempt/queue/xqueue.h"
#include "standin.h"
#include "xsched/cuda/hal.h"

namespace xsched::cuda {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline bool WaitUntil(const std::function<bool()>& condition,
                      milliseconds at_most = std::chrono::seconds(5)) {
  for (auto begin = Clock::now(); !condition();) {
    if (Clock::now() - begin > at_most) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// A word that a stream waits for or writes.
struct Word {
  volatile uint32_t* host = nullptr;
  CUdeviceptr device = 0;

  void Make() {
    void* word = nullptr;
    ASSERT_EQ(cuMemHostAlloc(&word, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
              CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostGetDevicePointer_v2(&device, word, 0), CUDA_SUCCESS);
    host = static_cast<volatile uint32_t*>(word);
    *host = 0;
  }
};

class ScheduledProgram : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&store_, module, "store"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&spin_, module, "spin_us"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&append_, module, "append_after"), CUDA_SUCCESS);
    open_.Make();
    at_work_.Make();
    done_.Make();
    low_ = NewStream(0);
    high_ = NewStream(9);
    // The first launch of a function opens all gates, so do it now.
    ASSERT_EQ(Store(low_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  void TearDown() override {
    Open();
    EXPECT_EQ(cuStreamDestroy_v2(low_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(high_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }

  static CUstream NewStream(Priority priority) {
    CUstream stream = CudaProgram::NewStream();
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    EXPECT_EQ(cuStreamWriteValue32_v2(stream, ScratchWord(), 1, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(CudaQueueGet(&hwq, stream), kXSchedSuccess);
    EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
    EXPECT_EQ(XHintPriority(queue, priority), kXSchedSuccess);
    return stream;
  }
  static CUdeviceptr ScratchWord() {
    static Word word;
    if (word.host == nullptr) word.Make();
    return word.device;
  }

  CUresult Store(CUstream stream, uint32_t value) const {
    CUdeviceptr address = done_.device;
    void* arguments[] = {&address, &value};
    return cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  }
  CUresult Spin(CUstream stream, int us) const {
    void* arguments[] = {&us};
    return cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  }
  // The stream has unfinished work until Open, and does not use the device.
  void Occupy(CUstream stream) const {
    *open_.host = 0;
    ASSERT_EQ(cuStreamWaitValue32_v2(stream, open_.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }
  void Open() const { *open_.host = 1; }

  // A stream has a queue from its first command on.
  static bool IsHeld(CUstream stream) {
    const preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, KeyOf(stream));
    return queue != nullptr && queue->block().gate.load() == ipc::kGateHold;
  }
  // Occupies the high stream, so that the low one is held.
  void HoldLow() const { Hold(low_, high_); }
  // Occupies `urgent`, so that `low` is held. `low` has a command that waits at a gate: the scheduler would
  // let an idle queue run.
  void Hold(CUstream low, CUstream urgent) const {
    HoldAtWork(low, urgent);
    const CUresult next = cuStreamWriteValue32_v2(low, ScratchWord(), 1, 0);
    EndWork();
    ASSERT_EQ(next, CUDA_SUCCESS);
  }
  // As Hold, but `low` works until EndWork: its next command is the first one to get a gate.
  void HoldAtWork(CUstream low, CUstream urgent) const {
    // The end of an earlier hold may not have been seen yet. It would be taken for this one.
    ASSERT_TRUE(WaitUntil([low] { return !IsHeld(low); }));
    Occupy(urgent);
    *at_work_.host = 0;
    ASSERT_EQ(cuStreamWaitValue32_v2(low, at_work_.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    const bool held = WaitUntil([low] { return IsHeld(low); });
    if (!held) EndWork();
    ASSERT_TRUE(held);
  }
  void EndWork() const { *at_work_.host = 1; }

  CUfunction store_ = nullptr;
  CUfunction spin_ = nullptr;
  CUfunction append_ = nullptr;
  CUstream low_ = nullptr;
  CUstream high_ = nullptr;
  Word open_;
  Word at_work_;  // the low stream works until it is 1
  Word done_;
};

}  // namespace xsched::cuda
