// A program's own kernels over AMD's own ROCr: compiled by AMD's compiler for the GPU, loaded and launched by
// AMD's runtime, stopped and resumed by XSched. Their instructions are not run: functions of the same names
// do their work.
#include <gtest/gtest.h>
#include <hip/hiprtc.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "fixture.h"
#include "hip_api.h"
#include "standin_amdgpu.h"

namespace xsched::hip {
namespace {

constexpr char kSource[] = R"(
  extern "C" __global__ void add(int* sum, int value) { atomicAdd(sum, value); }
  extern "C" __global__ void count_to(int* count, int end) { while (atomicAdd(count, 1) + 1 < end) {} }
)";

struct Arguments {
  int* to;
  int value;
};

Arguments Read(const void* arguments) {
  Arguments read;
  std::memcpy(&read, arguments, sizeof read);
  return read;
}

void Add(const void* arguments, const void*) {
  const Arguments add = Read(arguments);
  *add.to += add.value;
}

// Counts to half its end, and to the end when it may.
std::atomic<bool> may_end{false};
int CountTo(void* state, const void* arguments) {
  const Arguments count = Read(arguments);
  int done;
  std::memcpy(&done, state, sizeof done);
  if (done >= count.value / 2 && !may_end) return 1;
  ++done;
  std::memcpy(state, &done, sizeof done);
  __atomic_fetch_add(count.to, 1, __ATOMIC_ACQ_REL);
  return done < count.value ? 1 : 0;
}

std::vector<char> Compile(const char* source) {
  hiprtcProgram program = nullptr;
  EXPECT_EQ(hiprtcCreateProgram(&program, source, "program.hip", 0, nullptr, nullptr), HIPRTC_SUCCESS);
  const char* options[] = {"--offload-arch=gfx942"};
  EXPECT_EQ(hiprtcCompileProgram(program, 1, options), HIPRTC_SUCCESS);
  size_t size = 0;
  EXPECT_EQ(hiprtcGetCodeSize(program, &size), HIPRTC_SUCCESS);
  std::vector<char> code(size);
  EXPECT_EQ(hiprtcGetCode(program, code.data()), HIPRTC_SUCCESS);
  hiprtcDestroyProgram(&program);
  return code;
}

class Program : public LevelsFixture {
 protected:
  void SetUp() override {
    LevelsFixture::SetUp();
    Set("3");
    standin_amdgpu_set_kernel("add", Add);
    standin_amdgpu_set_wave("count_to", CountTo);
    code_ = Compile(kSource);
    SUCCEEDS(hipModuleLoadData(&module_, code_.data()));
    SUCCEEDS(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    SUCCEEDS(hipHostMalloc(reinterpret_cast<void**>(&numbers_), 2 * sizeof(int), 0));
    numbers_[0] = numbers_[1] = 0;
  }
  void TearDown() override { may_end = true; }

  void Launch(const char* kernel, int* to, int value) const {
    hipFunction_t function = nullptr;
    SUCCEEDS(hipModuleGetFunction(&function, module_, kernel));
    void* arguments[] = {&to, &value};
    SUCCEEDS(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream_, arguments, nullptr));
  }

  std::vector<char> code_;
  hipModule_t module_ = nullptr;
  hipStream_t stream_ = nullptr;
  int* numbers_ = nullptr;  // where the kernels write
};

TEST_F(Program, launches_its_kernels) {
  for (int i = 1; i <= 100; ++i) Launch("add", &numbers_[0], i);
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(numbers_[0], 5050);
  EXPECT_EQ(standin_amdgpu_dispatches("add"), 100u);
}

TEST_F(Program, is_stopped_in_the_middle_of_its_kernel_and_goes_on) {
  constexpr int kEnd = 1000;
  Launch("count_to", &numbers_[0], kEnd);
  Launch("add", &numbers_[1], 7);
  ASSERT_TRUE(Await([this] { return __atomic_load_n(&numbers_[0], __ATOMIC_ACQUIRE) == kEnd / 2; }));
  Suspend(QueueOf(stream_));
  EXPECT_TRUE(NoneActive());
  EXPECT_EQ(standin_amdgpu_saves(), 1u);
  may_end = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(numbers_[0], kEnd / 2);
  Resume(QueueOf(stream_));
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(numbers_[0], kEnd);
  EXPECT_EQ(numbers_[1], 7);
}

}  // namespace
}  // namespace xsched::hip
