// Calls that wait inside the driver for whole contexts, or may do so. Held streams stay held, however often a
// program makes such calls.
#include <atomic>
#include <functional>
#include <ostream>
#include <thread>

#include "scheduled.h"

namespace xsched::cuda {
namespace {

class WaitingCall : public ScheduledProgram {
 protected:
  // Another thread makes `call`, which returns when all work has finished. Checks that the low stream's
  // commands stay held until the high stream is done.
  void StaysHeldDuring(const std::function<CUresult()>& call) {
    bool held = false;
    // On a busy machine the watchdog may let it run.
    for (int i = 0; i < 10 && !held; ++i) {
      *done_.host = 0;
      HoldLow();
      ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
      std::thread caller([&] {
        EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        EXPECT_EQ(call(), CUDA_SUCCESS);
      });
      std::this_thread::sleep_for(milliseconds(20));
      const uint32_t done = *done_.host;
      held = IsHeld(low_);
      Open();
      caller.join();
      EXPECT_EQ(*done_.host, 1u);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      EXPECT_TRUE(!held || done == 0);
    }
    EXPECT_TRUE(held);
  }
};

TEST_F(WaitingCall, a_thread_that_synchronizes_the_context_leaves_the_rest_held) {
  StaysHeldDuring([] { return cuCtxSynchronize(); });
}

TEST_F(WaitingCall, a_thread_that_frees_memory_leaves_the_rest_held) {
  CUdeviceptr block = 0;
  StaysHeldDuring([&] {
    const CUresult result = cuMemAlloc_v2(&block, 64);
    return result != CUDA_SUCCESS ? result : cuMemFree_v2(block);
  });
}

// Natively, neither waits for anything.
TEST_F(WaitingCall, freeing_memory_of_a_pool_or_none_waits_for_nothing_and_opens_no_gate) {
  bool valid = false;
  // On a busy machine the watchdog may let it run.
  for (int i = 0; i < 10 && !valid; ++i) {
    *done_.host = 0;
    CUdeviceptr block = 0;
    ASSERT_EQ(cuMemAllocAsync(&block, 64, low_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
    HoldLow();
    ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
    const auto begin = Clock::now();
    EXPECT_EQ(cuMemFree_v2(block), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
    valid = Clock::now() - begin < milliseconds(10);
    std::this_thread::sleep_for(milliseconds(5));  // to run, if its gate was opened
    const uint32_t done = *done_.host;
    valid = IsHeld(low_) && valid;
    Open();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_TRUE(!valid || done == 0);
  }
  EXPECT_TRUE(valid);
}

TEST_F(WaitingCall, a_thread_that_loads_code_leaves_the_rest_held) {
  StaysHeldDuring([] {
    CUmodule module = nullptr;
    return cuModuleLoadData(&module, "any");
  });
}

TEST_F(WaitingCall, a_thread_that_launches_a_kernel_for_the_first_time_waits_for_nobody_long) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "nop"), CUDA_SUCCESS);
  const uint64_t calls = standin_calls("cuKernelGetFunction");
  Occupy(low_);
  std::thread loader([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  });
  EXPECT_TRUE(WaitUntil([&] { return standin_calls("cuKernelGetFunction") != calls; }));
  Open();
  loader.join();
}

// While a launch waits for room on a stream, the driver lets nobody set a priority in that context.
class PriorityChange : public ScheduledProgram {
 protected:
  // Checks that `call` on a more urgent stream than those that hold the low one returns, although the low one
  // is full.
  void ReturnsBesideAFullStream(const std::function<CUresult(CUstream)>& call) {
    const CUstream most_urgent = NewStream(20);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> launched{0};
    std::thread urgent = Repeat(stop, [this] {
      EXPECT_EQ(Spin(high_, 1000), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    });
    std::thread filling = Repeat(stop, [&] {
      EXPECT_EQ(Store(low_, 1), CUDA_SUCCESS);
      ++launched;
    });
    constexpr uint64_t kRoom = 1021;  // of a stream
    EXPECT_TRUE(WaitUntil([&] {
      const uint64_t before = launched;
      std::this_thread::sleep_for(milliseconds(20));
      return launched == before && standin_pending(0) >= kRoom && IsHeld(low_);
    }));
    std::atomic<bool> returned{false};
    std::thread caller([&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      EXPECT_EQ(call(most_urgent), CUDA_SUCCESS);
      returned = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return returned.load(); }, milliseconds(150)));
    stop = true;
    for (std::thread* thread : {&urgent, &filling, &caller}) thread->join();
    EXPECT_EQ(cuStreamDestroy_v2(most_urgent), CUDA_SUCCESS);
  }

 private:
  std::thread Repeat(const std::atomic<bool>& stop, std::function<void()> work) const {
    return std::thread([this, &stop, work = std::move(work)] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      while (!stop) work();
    });
  }
};

TEST_F(PriorityChange, of_one_stream_waits_for_no_held_stream_that_is_full) {
  ReturnsBesideAFullStream([](CUstream stream) {
    CUstreamAttrValue value{};
    value.priority = -1;
    return cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  });
}

TEST_F(PriorityChange, by_copying_another_streams_waits_for_no_held_stream_that_is_full) {
  ReturnsBesideAFullStream([this](CUstream stream) { return cuStreamCopyAttributes(stream, high_); });
}

TEST_F(WaitingCall, a_stream_that_is_destroyed_while_others_wait_for_it_is_no_harm) {
  for (int i = 0; i < 20; ++i) {
    CUstream stream = NewStream(0);
    for (int k = 0; k < 20; ++k) ASSERT_EQ(Spin(stream, 200), CUDA_SUCCESS);
    std::thread waiter([this] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    waiter.join();
  }
}

// ---- the same call again and again ----

struct RepeatedCall {
  const char* function;  // as it is exported
  std::function<void()> call;

  friend void PrintTo(const RepeatedCall& repeated, std::ostream* out) { *out << repeated.function; }
};

// The low stream is held because of a stream of another context, as it would be because of another process.
// So no thread that uses the low stream's context is more urgent than it.
class BesideAnotherContext : public ScheduledProgram {
 protected:
  void SetUp() override {
    ScheduledProgram::SetUp();
    ASSERT_EQ(XHintPriority(QueueOf(high_, KeyOf(high_)), 0), kXSchedSuccess);
    ASSERT_EQ(cuCtxCreate_v2(&other_, 0, 0), CUDA_SUCCESS);
    urgent_ = NewStream(9);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }
  void TearDown() override {
    ScheduledProgram::TearDown();
    EXPECT_EQ(cuCtxDestroy_v2(other_), CUDA_SUCCESS);
  }

  CUcontext other_ = nullptr;
  CUstream urgent_ = nullptr;
};

TEST_F(BesideAnotherContext, a_thread_that_synchronizes_the_context_opens_no_gate_however_long_kernels_take) {
  constexpr uint32_t kKernels = 6;
  constexpr int kKernelUs = 80'000;  // longer than the patience without progress
  for (uint32_t i = 1; i <= kKernels; ++i) {
    ASSERT_EQ(Spin(low_, kKernelUs), CUDA_SUCCESS);
    ASSERT_EQ(Store(low_, i), CUDA_SUCCESS);
  }
  std::thread caller([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  std::this_thread::sleep_for(milliseconds(60));
  const auto begin = Clock::now();
  while (Clock::now() - begin < milliseconds(600)) {
    ASSERT_EQ(Spin(urgent_, 1000), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(urgent_), CUDA_SUCCESS);
    EXPECT_EQ(preempt::FindXQueue(kPlatformCUDA, KeyOf(low_))->block().open.load(), 0u);
  }
  caller.join();
  EXPECT_EQ(*done_.host, kKernels);
}

class RepeatedCalls : public BesideAnotherContext, public testing::WithParamInterface<RepeatedCall> {
 protected:
  // Returns whether the low stream's command has run after a while, in which another thread repeats `call`.
  // Sets *valid to whether the scheduler has held the stream all the while: on a busy machine the watchdog
  // may let it run.
  bool RunsBeside(const RepeatedCall& repeated, bool* valid) {
    *done_.host = 0;
    Hold(low_, urgent_);
    const auto begin = Clock::now();
    EXPECT_EQ(Store(low_, 1), CUDA_SUCCESS);
    std::atomic<bool> stop{false};
    // Long enough for the device to see a gate that is open meanwhile.
    standin_slow(repeated.function, 1'000'000);
    std::thread caller([&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      while (!stop.load()) repeated.call();
    });
    std::this_thread::sleep_for(milliseconds(20));
    const bool runs = *done_.host != 0;
    *valid = IsHeld(low_) && Clock::now() - begin < milliseconds(60);
    Open();
    stop.store(true);
    caller.join();
    standin_slow(repeated.function, 0);
    return runs;
  }
};

TEST_P(RepeatedCalls, leave_the_rest_held) {
  bool valid = false;
  for (int i = 0; i < 10 && !valid; ++i) {
    const bool runs = RunsBeside(GetParam(), &valid);
    EXPECT_FALSE(valid && runs);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(*done_.host, 1u);
  }
  EXPECT_TRUE(valid);
}

// What the calls return does not matter: the stand-in does not have all of these functions.
const RepeatedCall kDrains[] = {
    {"cuMemFree_v2",
     [] {
       CUdeviceptr block = 0;
       cuMemAlloc_v2(&block, 64);
       cuMemFree_v2(block);
     }},
    {"cuMemFreeHost",
     [] {
       void* block = nullptr;
       cuMemAllocHost_v2(&block, 64);
       cuMemFreeHost(block);
     }},
    {"cuMemHostUnregister", [] { cuMemHostUnregister(nullptr); }},
    {"cuArrayDestroy", [] { cuArrayDestroy(nullptr); }},
    {"cuModuleLoadDataEx",
     [] {
       CUmodule module = nullptr;
       cuModuleLoadDataEx(&module, "any", 0, nullptr, nullptr);
     }},
    {"cuModuleUnload",
     [] {
       CUmodule module = nullptr;
       cuModuleLoadData(&module, "any");
       cuModuleUnload(module);
     }},
    {"cuLibraryUnload", [] { cuLibraryUnload(nullptr); }},
};

const RepeatedCall kPossibleWaits[] = {
    {"cuMemHostRegister_v2",
     [] {
       alignas(4096) static char page[4096];
       cuMemHostRegister_v2(page, sizeof page, 0);
     }},
    {"cuMemUnmap", [] { cuMemUnmap(4096, 4096); }},
    {"cuMemPoolTrimTo",
     [] {
       CUmemoryPool pool = nullptr;
       cuDeviceGetDefaultMemPool(&pool, 0);
       cuMemPoolTrimTo(pool, 0);
     }},
    {"cuModuleGetFunction",
     [] {
       CUfunction function = nullptr;
       cuModuleGetFunction(&function, nullptr, "nop");
     }},
    {"cuLibraryLoadData",
     [] {
       CUlibrary library = nullptr;
       cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0);
     }},
    {"cuGraphInstantiateWithFlags",
     [] {
       CUgraph graph = nullptr;
       CUgraphExec executable = nullptr;
       cuGraphCreate(&graph, 0);
       cuGraphInstantiateWithFlags(&executable, graph, 0);
     }},
    {"cuCtxSetLimit", [] { cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024); }},
};

const RepeatedCall kOnContexts[] = {
    {"cuDevicePrimaryCtxRetain",
     [] {
       CUcontext context = nullptr;
       cuDevicePrimaryCtxRetain(&context, 0);
     }},
    {"cuDevicePrimaryCtxRelease_v2",
     [] {
       CUcontext context = nullptr;
       cuDevicePrimaryCtxRetain(&context, 0);
       cuDevicePrimaryCtxRelease_v2(0);
     }},
};

std::string NameOf(const testing::TestParamInfo<RepeatedCall>& info) { return info.param.function; }

INSTANTIATE_TEST_SUITE_P(Drains, RepeatedCalls, testing::ValuesIn(kDrains), NameOf);
INSTANTIATE_TEST_SUITE_P(PossibleWaits, RepeatedCalls, testing::ValuesIn(kPossibleWaits), NameOf);
INSTANTIATE_TEST_SUITE_P(OnContexts, RepeatedCalls, testing::ValuesIn(kOnContexts), NameOf);

// ---- what these calls do not wait for ----

TEST_F(WaitingCall, one_that_may_wait_is_not_delayed_beside_work_that_is_not_held) {
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
  Occupy(low_);
  auto best = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    CUfunction function = nullptr;
    ASSERT_EQ(cuModuleGetFunction(&function, module, "nop"), CUDA_SUCCESS);
    best = std::min(best, Clock::now() - begin);
  }
  EXPECT_LT(best, milliseconds(2));
}

// As with per-thread default streams, which no thread of ours can ask about.
TEST_F(WaitingCall, one_on_a_device_without_rivals_is_not_delayed_by_those_of_another_device) {
  CUcontext there = nullptr;
  CUdeviceptr block = 0;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&there, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(there), CUDA_SUCCESS);
  // Both streams of device 0 can be held, or can hold the other.
  ASSERT_TRUE(preempt::AnyMayBeHeld());
  auto best = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    Word word;
    word.Make();
    ASSERT_EQ(cuMemAlloc_v2(&block, 64), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWriteValue32_v2(CU_STREAM_PER_THREAD, word.device, 1, 0), CUDA_SUCCESS);
    ASSERT_TRUE(WaitUntil([&] { return *word.host == 1; }));
    const auto begin = Clock::now();
    ASSERT_EQ(cuMemFree_v2(block), CUDA_SUCCESS);
    best = std::min(best, Clock::now() - begin);
  }
  EXPECT_LT(best, milliseconds(10));
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
}

TEST_F(WaitingCall, one_that_may_wait_waits_only_shortly_for_what_may_be_less_urgent_than_its_caller) {
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
  HoldLow();
  ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
  std::thread caller([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, "nop"), CUDA_SUCCESS);
  });
  // It returns although the urgent stream does not go on.
  caller.join();
  Open();
}

}  // namespace
}  // namespace xsched::cuda
