// Streams of one process that are scheduled against each other, by the scheduler in it.
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "fixture.h"
#include "preempt/xqueue.h"
#include "standin.h"
#include "xsched/cuda/hal.h"

namespace xsched::cuda {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// What a queue that others are held for may be silent before it counts as stuck (SchedulerConfig::stall_min).
constexpr milliseconds kWatchdog{80};

bool WaitUntil(const std::function<bool()>& condition) {
  for (auto begin = Clock::now(); !condition();) {
    if (Clock::now() - begin > std::chrono::seconds(5)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// A word that a stream waits for, and one that a stream has written.
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

class Scheduled : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&store_, module, "store"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&spin_, module, "spin_us"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&append_, module, "append_after"), CUDA_SUCCESS);
    open_.Make();
    done_.Make();
    low_ = NewStream(0);
    high_ = NewStream(9);
    // The first launch of a function opens all gates.
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
  // The stream is at work until Open, and needs nothing of the device meanwhile.
  void Occupy(CUstream stream) const {
    *open_.host = 0;
    ASSERT_EQ(cuStreamWaitValue32_v2(stream, open_.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }
  void Open() const { *open_.host = 1; }

  static bool IsHeld(CUstream stream) {
    const preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, KeyOf(stream));
    return queue->block().gate.load() == ipc::kGateHold;
  }
  // The low stream is held, since the high one is at work.
  void HoldLow() const {
    Occupy(high_);
    ASSERT_EQ(cuStreamWriteValue32_v2(low_, ScratchWord(), 1, 0), CUDA_SUCCESS);
    ASSERT_TRUE(WaitUntil([this] { return IsHeld(low_); }));
  }

  // How long `work` takes, at best: a machine that is busy with something else makes it longer.
  static milliseconds Best(const std::function<void()>& work) {
    auto best = Clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      auto begin = Clock::now();
      work();
      best = std::min(best, Clock::now() - begin);
    }
    return std::chrono::duration_cast<milliseconds>(best);
  }

  // `launch` puts one command on the held low stream, which stores 1: it gets a gate, and waits there.
  void IsGatedAsOne(const std::function<CUresult()>& launch) {
    bool held = false;
    // The watchdog may have let it go in the middle of a look.
    for (int i = 0; i < 10 && !held; ++i) {
      Open();
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      *done_.host = 0;
      HoldLow();
      const uint64_t commands = Commands(KeyOf(low_));
      const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
      ASSERT_EQ(launch(), CUDA_SUCCESS);
      const uint64_t new_gates = standin_calls("cuStreamBatchMemOp_v2") - gates;
      std::this_thread::sleep_for(milliseconds(10));
      const uint32_t done = *done_.host;
      held = IsHeld(low_);
      if (!held) continue;
      EXPECT_EQ(Commands(KeyOf(low_)), commands + 1);
      EXPECT_EQ(new_gates, 1u);
      EXPECT_EQ(done, 0u);
    }
    ASSERT_TRUE(held);
    Open();
    ASSERT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
    EXPECT_EQ(*done_.host, 1u);
  }

  CUfunction store_ = nullptr;
  CUfunction spin_ = nullptr;
  CUfunction append_ = nullptr;
  CUstream low_ = nullptr;
  CUstream high_ = nullptr;
  Word open_;
  Word done_;
};

// ---- what is gated ----

TEST_F(Scheduled, a_kernel_waits_at_a_gate) {
  IsGatedAsOne([this] { return Store(low_, 1); });
}

TEST_F(Scheduled, a_kernel_launched_with_attributes_waits_at_a_gate) {
  IsGatedAsOne([this] {
    CUdeviceptr address = done_.device;
    uint32_t value = 1;
    void* arguments[] = {&address, &value};
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, low_, nullptr, 0};
    return cuLaunchKernelEx(&config, store_, arguments, nullptr);
  });
}

TEST_F(Scheduled, a_cooperative_kernel_waits_at_a_gate) {
  IsGatedAsOne([this] {
    CUdeviceptr address = done_.device;
    uint32_t value = 1;
    void* arguments[] = {&address, &value};
    return cuLaunchCooperativeKernel(store_, 1, 1, 1, 1, 1, 1, 0, low_, arguments);
  });
}

TEST_F(Scheduled, a_copy_waits_at_a_gate) {
  const uint32_t one = 1;
  IsGatedAsOne([&] { return cuMemcpyHtoDAsync_v2(done_.device, &one, sizeof one, low_); });
}

TEST_F(Scheduled, a_graph_waits_at_a_gate_as_a_whole_and_has_none_in_it) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  size_t nodes = 0;
  HoldLow();
  const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
  ASSERT_EQ(cuStreamBeginCapture_v2(low_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (uint32_t i = 0; i < 20; ++i) ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(low_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(standin_calls("cuStreamBatchMemOp_v2"), gates);
  ASSERT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 20u);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  IsGatedAsOne([&] { return cuGraphLaunch(executable, low_); });
}

TEST_F(Scheduled, a_lone_stream_has_no_gates) {
  ASSERT_EQ(cuStreamDestroy_v2(high_), CUDA_SUCCESS);
  const preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, KeyOf(low_));
  ASSERT_TRUE(WaitUntil([queue] { return queue->block().flags.load() == 0; }));
  const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
  EXPECT_EQ(standin_calls("cuStreamBatchMemOp_v2"), gates);
  high_ = NewStream(9);
}

// ---- waits for what is held ----

TEST_F(Scheduled, a_wait_for_an_event_of_a_held_stream_lets_it_run) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const milliseconds best = Best([&] {
    HoldLow();
    ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event, low_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(high_, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(Store(high_, 2), CUDA_SUCCESS);
    Open();
    ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    EXPECT_EQ(*done_.host, 2u);
    ASSERT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
  });
  EXPECT_LT(best, kWatchdog / 2);
}

TEST_F(Scheduled, what_stands_behind_an_event_that_is_waited_for_is_held_again) {
  constexpr int kBehind = 60;
  CUdeviceptr log = 0;
  CUevent event = nullptr;
  ASSERT_EQ(cuMemAlloc_v2(&log, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32_v2(log, 0, 1024), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  auto append = [&](CUstream stream, int value) {
    int us = 1000;
    void* arguments[] = {&log, &value, &us};
    ASSERT_EQ(cuLaunchKernel(append_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), CUDA_SUCCESS);
  };
  append(low_, 0);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  // At best: on a busy machine the watchdog may let the low stream go.
  ptrdiff_t fewest = kBehind;
  for (int i = 0; i < 5 && fewest > kBehind / 3; ++i) {
    ASSERT_EQ(cuMemsetD32_v2(log, 0, 1024), CUDA_SUCCESS);
    HoldLow();
    append(low_, 1);
    ASSERT_EQ(cuEventRecord(event, low_), CUDA_SUCCESS);
    for (int k = 0; k < kBehind; ++k) append(low_, 1);
    ASSERT_EQ(cuStreamWaitEvent(high_, event, 0), CUDA_SUCCESS);
    for (int k = 0; k < kBehind; ++k) append(high_, 2);
    Open();
    ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    const int* entries = reinterpret_cast<const int*>(log) + 1;
    const ptrdiff_t low = std::count(entries, entries + entries[-1], 1);
    EXPECT_GE(low, 1);
    fewest = std::min(fewest, low);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  EXPECT_LE(fewest, kBehind / 3);
}

TEST_F(Scheduled, a_wait_from_another_device_lets_a_held_stream_run) {
  CUevent event = nullptr;
  CUcontext other = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
  CUstream waiter = CudaProgram::NewStream();
  ASSERT_EQ(cuStreamWriteValue32_v2(waiter, ScratchWord(), 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(waiter), CUDA_SUCCESS);
  const milliseconds best = Best([&] {
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    HoldLow();
    ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event, low_), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(waiter, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(waiter), CUDA_SUCCESS);
    EXPECT_EQ(*done_.host, 1u);
    Open();
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  EXPECT_LT(best, kWatchdog / 2);
}

}  // namespace
}  // namespace xsched::cuda
