// Streams of one process that the local scheduler schedules against each other.
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "scheduled.h"

namespace xsched::cuda {
namespace {

// How long a queue for which others are held may retire nothing before it is stalled
// (SchedulerConfig::stall_after).
constexpr milliseconds kWatchdog{80};

class Scheduled : public ScheduledProgram {
 protected:
  // The shortest time of `work` in several tries, because a busy machine makes it longer.
  static milliseconds Best(const std::function<void()>& work) {
    auto best = Clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      auto begin = Clock::now();
      work();
      best = std::min(best, Clock::now() - begin);
    }
    return std::chrono::duration_cast<milliseconds>(best);
  }

  // Checks that the command of `launch`, which stores 1 on the held low stream, gets one gate and waits
  // there.
  void IsGatedAsOne(const std::function<CUresult()>& launch) {
    bool held = false;
    // The watchdog may have let it run during the check.
    for (int i = 0; i < 10 && !held; ++i) {
      Open();
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      *done_.host = 0;
      HoldAtWork(low_, high_);
      const uint64_t commands = Commands(KeyOf(low_));
      const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
      const CUresult launched = launch();
      EndWork();
      ASSERT_EQ(launched, CUDA_SUCCESS);
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

TEST_F(Scheduled, a_wait_that_is_over_helps_no_later_stream) {
  CUstream awaited = NewStream(0);
  const preempt::XQueue* queue = preempt::FindXQueue(kPlatformCUDA, KeyOf(awaited));
  const uint32_t slot = queue->index();
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  // The high stream waits for a command with a large number.
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(cuStreamWriteValue32_v2(awaited, ScratchWord(), 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(Spin(awaited, 3000), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, awaited), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(high_, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy_v2(awaited), CUDA_SUCCESS);
  // Streams come and go until one has its slot.
  CUstream later = nullptr;
  for (int i = 0; i < 400 && later == nullptr; ++i) {
    later = NewStream(0);
    if (preempt::FindXQueue(kPlatformCUDA, KeyOf(later))->index() == slot) break;
    ASSERT_EQ(cuStreamDestroy_v2(later), CUDA_SUCCESS);
    later = nullptr;
  }
  ASSERT_NE(later, nullptr);
  Occupy(high_);
  ASSERT_EQ(cuStreamWriteValue32_v2(later, ScratchWord(), 1, 0), CUDA_SUCCESS);
  EXPECT_TRUE(WaitUntil([&] { return IsHeld(later); }));
  Open();
  EXPECT_EQ(cuStreamDestroy_v2(later), CUDA_SUCCESS);
}

// ---- suspensions by the program ----

TEST_F(Scheduled, a_stream_that_is_suspended_for_the_first_time_has_stopped_when_the_call_returns) {
  XQueueHandle queue = QueueOf(low_, KeyOf(low_));
  const preempt::XQueue* low = preempt::FindXQueue(kPlatformCUDA, KeyOf(low_));
  // There are gates in it, which nobody has made for suspensions.
  for (int i = 0; i < 40; ++i) ASSERT_EQ(Spin(low_, 1000), CUDA_SUCCESS);
  ASSERT_TRUE(WaitUntil([low] { return low->retired() >= 6; }));
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  const uint64_t busy = standin_busy_ns(0);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(standin_busy_ns(0), busy);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
}

TEST_F(Scheduled, a_stream_that_has_been_suspended_before_stops_at_its_next_gate) {
  XQueueHandle queue = QueueOf(low_, KeyOf(low_));
  const preempt::XQueue* low = preempt::FindXQueue(kPlatformCUDA, KeyOf(low_));
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  const uint64_t before = low->submitted();
  for (int i = 0; i < 40; ++i) ASSERT_EQ(Spin(low_, 1000), CUDA_SUCCESS);
  ASSERT_TRUE(WaitUntil([&] { return low->retired() >= before + 4; }));
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  EXPECT_LT(low->retired(), before + 30);
  const uint64_t busy = standin_busy_ns(0);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(standin_busy_ns(0), busy);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
}

// ---- the end of an urgent request ----

// The device reports the command itself, so the program's own wait adds nothing.
TEST_F(Scheduled, a_request_of_one_command_lets_the_others_go_when_the_program_sees_its_end) {
  std::vector<Clock::duration> late;
  ASSERT_EQ(Spin(high_, 10), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
  for (int i = 0; i < 15; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    ASSERT_EQ(Spin(high_, 10'000), CUDA_SUCCESS);
    ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
    ASSERT_TRUE(WaitUntil([this] { return IsHeld(low_); }));
    ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    const auto end = Clock::now();
    ASSERT_TRUE(WaitUntil([this] { return !IsHeld(low_); }));
    late.push_back(Clock::now() - end);
    ASSERT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
  }
  // The best ones: a busy machine makes any of them late, and without the program's word most of them are.
  std::sort(late.begin(), late.end());
  EXPECT_LT(late[2], std::chrono::microseconds(600));
}

// ---- contexts that go ----

// A device reads host memory through a mapping that belongs to one context.
TEST_F(Scheduled, gates_of_a_context_need_nothing_of_another_one) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  for (CUcontext* context : {&first, &second}) {
    const uint64_t registered = standin_calls("cuMemHostRegister_v2");
    ASSERT_EQ(cuCtxCreate_v2(context, 0, 0), CUDA_SUCCESS);
    CUstream stream = CudaProgram::NewStream();
    for (int i = 0; i < 10; ++i) ASSERT_EQ(Spin(stream, 1000), CUDA_SUCCESS);
    EXPECT_EQ(standin_calls("cuMemHostRegister_v2"), registered + 1);
  }
  ASSERT_EQ(cuCtxDestroy_v2(first), CUDA_SUCCESS);
  // The mapping that is free now is used again.
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    CUstream stream = CudaProgram::NewStream();
    const uint64_t gates = standin_calls("cuStreamBatchMemOp_v2");
    for (int k = 0; k < 10; ++k) ASSERT_EQ(Spin(stream, 1000), CUDA_SUCCESS);
    EXPECT_GT(standin_calls("cuStreamBatchMemOp_v2"), gates);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxDestroy_v2(first), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
}

TEST_F(Scheduled, a_stream_that_was_destroyed_in_a_context_that_fails_holds_nobody) {
  ASSERT_EQ(XHintPriority(QueueOf(high_, KeyOf(high_)), 0), kXSchedSuccess);
  CUcontext failing = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&failing, 0, 0), CUDA_SUCCESS);
  CUstream urgent = NewStream(9);
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  XQueueState state = kQueueStateUnknown;
  ASSERT_EQ(CudaQueueGet(&hwq, urgent), kXSchedSuccess);
  ASSERT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  Hold(low_, urgent);
  ASSERT_EQ(cuStreamDestroy_v2(urgent), CUDA_SUCCESS);
  ASSERT_EQ(XQueueQuery(queue, &state), kXSchedSuccess);
  standin_lose_context(failing, CUDA_ERROR_ILLEGAL_ADDRESS);
  // Nobody asks about the stream: the scheduler and the agent notice it.
  const preempt::XQueue* low = preempt::FindXQueue(kPlatformCUDA, KeyOf(low_));
  EXPECT_TRUE(WaitUntil([low] { return (low->block().flags.load() & ipc::kFlagGated) == 0; }));
  EXPECT_EQ(XQueueQuery(queue, &state), kXSchedErrorNotFound);
  EXPECT_EQ(cuCtxDestroy_v2(failing), CUDA_SUCCESS);
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

TEST_F(Scheduled, a_graph_that_was_launched_on_a_held_stream_lets_it_run_when_another_stream_launches_it) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(low_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(low_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  const milliseconds best = Best([&] {
    HoldLow();
    ASSERT_EQ(cuGraphLaunch(executable, low_), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(executable, high_), CUDA_SUCCESS);
    Open();
    ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
  });
  EXPECT_LT(best, kWatchdog / 2);
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
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
  // The best of several tries: on a busy machine the watchdog may let the low stream run.
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
