// One test for each rule of rules.h, of the same name.
#include "rules.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fake_rm.h"
#include "fixture.h"
#include "rm_abi.h"
#include "rule_tests.h"

namespace standin_test {
namespace {

using namespace standin::rm;

// ---- between processes: each body runs in a process of its own, and this one never calls the driver ----

class GroupRule : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "standin-cuda-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    for (pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  struct Group {
    pid_t pid;
    int output;
  };
  // A kernel may have been running, and its report may be late.
  static constexpr int kNearlyNone = 4;

  // Starts a process that runs kernels of 1 ms, or waits at a gate, until it is killed.
  Group Start(uint64_t slice_us, bool at_gate = false) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      setenv("STANDIN_CUDA_SHARED", folder_.c_str(), 1);
      Run(slice_us, at_gate, ends[1]);
    }
    children_.push_back(child);
    close(ends[1]);
    char started = 0;
    EXPECT_EQ(read(ends[0], &started, 1), 1);
    return {child, ends[0]};
  }
  [[noreturn]] static void Run(uint64_t slice_us, bool at_gate, int output) {
    CUcontext context;
    CUmodule module;
    CUfunction spin;
    CUdeviceptr gate = 0;
    int us = 1000;
    void* arguments[] = {&us};
    bool well = cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS &&
                cuModuleLoadData(&module, "any") == CUDA_SUCCESS &&
                cuModuleGetFunction(&spin, module, "spin_us") == CUDA_SUCCESS &&
                cuMemAlloc(&gate, 4) == CUDA_SUCCESS;
    if (!well) _exit(1);
    *reinterpret_cast<int*>(gate) = 0;
    standin_set_timeslice(0, slice_us);
    if (at_gate)
      well = well && cuStreamWaitValue32(nullptr, gate, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS;
    well = well && write(output, "s", 1) == 1;
    uint64_t launched = 0, reported = 0;
    while (well) {
      for (; well && standin_pending(0) < 16; ++launched) {
        well = cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS;
      }
      for (const uint64_t pending = standin_pending(0); reported + pending < launched; ++reported) {
        well = well && write(output, "k", 1) == 1;
      }
      usleep(300);
    }
    _exit(1);
  }
  static void End(const Group& group) {
    kill(group.pid, SIGKILL);
    waitpid(group.pid, nullptr, 0);
  }
  // The number of kernels that it has finished since the last call.
  static int Finished(const Group& group) {
    char buffer[4096];
    int waiting = 0;
    if (ioctl(group.output, FIONREAD, &waiting) != 0 || waiting == 0) return 0;
    return static_cast<int>(read(group.output, buffer, sizeof(buffer)));
  }
  static int FinishedIn(const Group& group, std::chrono::milliseconds time) {
    Finished(group);
    std::this_thread::sleep_for(time);
    return Finished(group);
  }

  std::string folder_;
  std::vector<pid_t> children_;
};

TEST_F(GroupRule, shortest_slices_stand_still) {
  const Group one = Start(1);
  EXPECT_GT(FinishedIn(one, 200ms), 20) << "alone it has the device";
  const Group other = Start(1);
  std::this_thread::sleep_for(50ms);  // until both have begun
  Finished(one);
  Finished(other);
  EXPECT_LE(FinishedIn(one, 200ms) + Finished(other), kNearlyNone);
  const Group third = Start(2000);
  EXPECT_GT(FinishedIn(third, 200ms), 20) << "a longer slice makes progress beside them";
  End(other);
  End(third);
  EXPECT_GT(FinishedIn(one, 200ms), 20);
  Start(1, true);
  std::this_thread::sleep_for(50ms);  // until it waits there
  Finished(one);
  EXPECT_LE(FinishedIn(one, 200ms), kNearlyNone) << "beside one that waits at a gate";
}

TEST_F(GroupRule, shortest_slice_yields) {
  const Group low = Start(1), high = Start(100'000);
  std::this_thread::sleep_for(20ms);  // until the high one has begun
  Finished(high);
  EXPECT_LE(FinishedIn(low, 300ms), 20);
  EXPECT_GT(Finished(high), 60);
  End(high);
  Start(100'000, true);
  EXPECT_GT(FinishedIn(low, 300ms), 60);
}

TEST_F(GroupRule, stopped_program_keeps_its_gates) {
  const Group working = Start(2000), stopped = Start(1'000'000);
  kill(stopped.pid, SIGSTOP);
  EXPECT_GT(FinishedIn(working, 300ms), 60);
  End(working);
  End(stopped);
  const Group waiting = Start(1, true);
  kill(waiting.pid, SIGSTOP);
  const Group low = Start(1);
  EXPECT_LE(FinishedIn(low, 100ms), kNearlyNone);
}

// ---- within one process ----

constexpr int kRoom = 1020;  // launches behind one gate

// Threads that make one call each. Knows which calls have returned.
class Calls {
 public:
  explicit Calls(CUcontext context) : context_(context) {}
  ~Calls() {
    for (std::thread& thread : threads_) thread.join();
  }

  std::atomic<bool>& Start(std::function<CUresult()> call) {
    auto& back = *back_.emplace_back(std::make_unique<std::atomic<bool>>(false));
    threads_.emplace_back([this, &back, call = std::move(call)] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      EXPECT_EQ(call(), CUDA_SUCCESS);
      back = true;
    });
    return back;
  }
  bool Blocks(std::function<CUresult()> call) {
    const std::atomic<bool>& back = Start(std::move(call));
    for (int i = 0; i < 50 && !back; ++i) std::this_thread::sleep_for(1ms);
    return !back;
  }
  bool Returns(std::function<CUresult()> call) {
    const std::atomic<bool>& back = Start(std::move(call));
    for (int i = 0; i < 5000 && !back; ++i) std::this_thread::sleep_for(1ms);
    return back;
  }

 private:
  const CUcontext context_;
  std::vector<std::unique_ptr<std::atomic<bool>>> back_;
  std::vector<std::thread> threads_;
};

class Rule : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    nop_ = Function("nop");
    calls_.emplace(context);
  }
  void TearDown() override {
    Open();
    calls_.reset();
    Cuda::TearDown();
  }

  CUresult Nop(CUstream stream) const {
    return cuLaunchKernel(nop_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }
  CUresult SetPriority(CUstream stream) const {
    CUstreamAttrValue value{};
    value.priority = -1;
    return cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  }
  static CUresult Query(CUstream stream, CUresult expected) {
    return cuStreamQuery(stream) == expected ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  }
  // Stream a waits at a gate, and a thread is blocked in a launch on it.
  void FillA() {
    SUCCEEDS(Hold(a));
    for (int i = 0; i < kRoom; ++i) SUCCEEDS(Nop(a));
    ASSERT_TRUE(calls_->Blocks([this] { return Nop(a); }));
  }
  // Stream a waits at a gate, and a thread waits for it in `call`.
  void WaitIn(std::function<CUresult()> call) {
    SUCCEEDS(Hold(a));
    ASSERT_TRUE(calls_->Blocks(std::move(call)));
  }
  void NothingElseIsBlocked(bool launches) {
    CUstreamCaptureStatus status;
    CUcontext popped;
    EXPECT_TRUE(calls_->Returns([&] { return Query(b, CUDA_SUCCESS); }));
    EXPECT_TRUE(calls_->Returns([&] { return cuStreamIsCapturing(b, &status); }));
    EXPECT_TRUE(calls_->Returns([&] {
      const CUresult pushed = cuCtxPushCurrent(context);
      return pushed ? pushed : cuCtxPopCurrent(&popped);
    }));
    EXPECT_TRUE(calls_->Returns([&] { return cuStreamWriteValue32(b, At(Memory(1)), 1, 0); }));
    if (!launches) return;
    EXPECT_TRUE(calls_->Returns([&] { return Nop(b); }));
    EXPECT_TRUE(calls_->Returns([&] { return cuStreamSynchronize(b); }));
  }

  CUfunction nop_ = nullptr;
  std::optional<Calls> calls_;
};

TEST_F(Rule, stream_depth) {
  SUCCEEDS(Hold(a));
  for (int i = 0; i < kRoom; ++i) ASSERT_TRUE(Nop(a) == CUDA_SUCCESS) << i;
  const std::atomic<bool>& back = calls_->Start([this] { return Append(a, 1); });
  std::this_thread::sleep_for(30ms);
  EXPECT_FALSE(back);
  EXPECT_TRUE(Log().empty());
  Open();
  calls_.reset();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{1}));
}

TEST_F(Rule, full_stream_blocks) {
  FillA();
  EXPECT_TRUE(calls_->Blocks([this] { return cuStreamQuery(a), CUDA_SUCCESS; }));
  EXPECT_TRUE(calls_->Blocks([this] { return SetPriority(a); }));
  EXPECT_TRUE(calls_->Blocks([this] { return SetPriority(b); }));
  EXPECT_TRUE(calls_->Blocks([this] { return cuStreamWriteValue32(a, At(gate), 1, 0); }));
}

TEST_F(Rule, full_stream_spares) {
  FillA();
  NothingElseIsBlocked(true);
}

TEST_F(Rule, waiting_free_blocks) {
  int* const memory = Memory(1);
  WaitIn([=] { return cuMemFree(At(memory)); });
  EXPECT_TRUE(calls_->Blocks([this] { return Nop(a); }));
  EXPECT_TRUE(calls_->Blocks([this] { return Nop(b); }));
  EXPECT_TRUE(calls_->Blocks([this] { return SetPriority(b); }));
}

TEST_F(Rule, waiting_free_spares) {
  int* const memory = Memory(1);
  WaitIn([=] { return cuMemFree(At(memory)); });
  NothingElseIsBlocked(false);
  EXPECT_TRUE(calls_->Returns([this] { return Query(a, CUDA_ERROR_NOT_READY); }));
}

TEST_F(Rule, synchronize_spares) {
  WaitIn([] { return cuCtxSynchronize(); });
  NothingElseIsBlocked(true);
  EXPECT_TRUE(calls_->Returns([this] { return Query(a, CUDA_ERROR_NOT_READY); }));
  EXPECT_TRUE(calls_->Returns([this] { return SetPriority(b); }));
  EXPECT_TRUE(calls_->Returns([this] { return Nop(a); }));
}

TEST_F(Rule, nothing_to_copy) {
  int* const to = Memory(1);
  SUCCEEDS(Hold(CU_STREAM_LEGACY));
  EXPECT_TRUE(calls_->Returns([this, to] { return cuMemcpyDtoH(to, At(log), 0); }));
  EXPECT_TRUE(calls_->Blocks([this, to] { return cuMemcpyDtoH(to, At(log), sizeof *to); }));
}

TEST_F(Rule, no_barriers) {
  CUgraph graph;
  CUgraphExec graph_exec;
  SUCCEEDS(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  SUCCEEDS(Nop(a));
  SUCCEEDS(cuStreamEndCapture(a, &graph));
  SUCCEEDS(cuGraphInstantiate(&graph_exec, graph, 0));
  CUevent event;
  SUCCEEDS(cuEventCreate(&event, 0));
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuEventRecord(event, a));
  SUCCEEDS(cuGraphLaunch(graph_exec, a));
  int number = 0;
  CUdeviceptr memory = 0;
  std::vector<char> pageable(1 << 20);
  const auto returns = [&](std::function<CUresult()> call) { return calls_->Returns(std::move(call)); };
  EXPECT_TRUE(returns([&] { return cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, nop_); }));
  EXPECT_TRUE(
      returns([&] { return cuFuncSetAttribute(nop_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0); }));
  EXPECT_TRUE(returns([&] { return cuFuncSetCacheConfig(nop_, CU_FUNC_CACHE_PREFER_L1); }));
  EXPECT_TRUE(returns([&] { return cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, nop_, 32, 0); }));
  EXPECT_TRUE(returns([&] { return cuMemAllocManaged(&memory, 1 << 20, CU_MEM_ATTACH_GLOBAL); }));
  EXPECT_TRUE(returns([&] { return cuMemAlloc(&memory, 1 << 20); }));
  EXPECT_TRUE(returns([&] { return cuMemcpyHtoD(memory, pageable.data(), pageable.size()); }));
  EXPECT_TRUE(returns([&] { return cuGraphLaunch(graph_exec, a); }));
  EXPECT_TRUE(returns([&] { return cuGraphExecDestroy(graph_exec); }));
  EXPECT_TRUE(returns([&] { return cuEventDestroy(event); }));
  EXPECT_TRUE(returns([&] { return cuStreamDestroy(a); }));
}

// ---- the resource manager: fake_rm.cc answers in this process ----

class ControlRule : public Rule {
 protected:
  void SetUp() override {
    setenv("STANDIN_CUDA_CONTROL", "/dev/null", 1);
    Rule::SetUp();
  }

  // The handles that rm.cc gives: the device's and the subdevice's once, then 19 for each context. Of those,
  // the first 9 are for copies; the compute group and its channels follow.
  static constexpr uint32_t kSubdevice = 0x5c000002;
  static inline uint32_t contexts_ = 0;
  const uint32_t group_ = kSubdevice + 1 + 19 * contexts_++ + 9, channel_ = group_ + 1;

  template <typename T>
  static uint32_t Ask(uint32_t object, uint32_t command, T& parameters) {
    Control control{1, object, command, 0, reinterpret_cast<uint64_t>(&parameters), sizeof(parameters), 0};
    EXPECT_EQ(ioctl(0, Request<Control>(kControl), &control), 0);
    return control.status;
  }
  uint32_t SetTimeslice(uint64_t us) const { return Ask(group_, kGroupSetTimeslice, us); }
  uint32_t SetDisabled(bool disable) const {
    DisableChannels parameters{};
    parameters.disable = disable;
    parameters.count = 1;
    parameters.channels[0] = channel_;
    return Ask(kSubdevice, kSubdeviceDisableChannels, parameters);
  }
};

TEST_F(ControlRule, controls_take_time) {
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(SetTimeslice(1000 + i), kOk);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 3ms);
  EXPECT_EQ(standin_timeslice(0), 1009u);
}

TEST_F(ControlRule, controls_time_out) {
  EXPECT_TRUE(fake_rm_fault("time_out", "disable", 2));
  EXPECT_EQ(SetDisabled(true), kOk);
  EXPECT_EQ(SetDisabled(false), kOk);
  EXPECT_EQ(SetDisabled(true), kTimeout);
  EXPECT_FALSE(standin_scheduled(0)) << "it took effect nevertheless";
  EXPECT_EQ(SetDisabled(false), kOk);
  EXPECT_TRUE(standin_scheduled(0));

  EXPECT_TRUE(fake_rm_fault("time_out", "set_timeslice", 1));
  EXPECT_EQ(SetTimeslice(77), kTimeout);
  EXPECT_EQ(standin_timeslice(0), 77u);
  EXPECT_TRUE(fake_rm_fault("time_out", "set_timeslice", 0));
  EXPECT_EQ(SetTimeslice(78), kOk);

  EXPECT_TRUE(fake_rm_fault("refuse", "enable", 1));
  EXPECT_EQ(SetDisabled(true), kOk);
  EXPECT_EQ(SetDisabled(false), kNotSupported);
  EXPECT_FALSE(standin_scheduled(0)) << "what is refused has no effect";
  EXPECT_TRUE(fake_rm_fault("refuse", "enable", 0));
  EXPECT_EQ(SetDisabled(false), kOk);

  EXPECT_TRUE(fake_rm_fault("block", "0xa06c0103", 20'000));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(SetTimeslice(79), kOk);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
  EXPECT_FALSE(fake_rm_fault("explode", "disable", 1));
  EXPECT_FALSE(fake_rm_fault("refuse", "anything", 1));
}

// ---- the list ----

TEST(DriverRules, each_has_a_test_of_its_name) { standin::ExpectATestOfEach(standin::kDriverRules, "Rule"); }

}  // namespace
}  // namespace standin_test
