// Tests that need separate processes: the environment, several processes on one device, the resource manager.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "fake_rm.h"
#include "rm_abi.h"
#include "standin.h"

namespace standin_test {
namespace {

using namespace std::chrono_literals;
using Environment = std::map<std::string, std::string>;

// Runs `body` in a child. It returns true if the test passed. This process never calls the driver.
pid_t Start(const Environment& environment, const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  _exit(body() ? 0 : 1);
}
bool EndedWell(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
bool RunsWell(const Environment& environment, const std::function<bool()>& body) {
  return EndedWell(Start(environment, body));
}

struct Program {
  CUcontext context = nullptr;
  CUfunction spin = nullptr;

  bool Prepare() {
    CUmodule module;
    return cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS &&
           cuModuleLoadData(&module, "any") == CUDA_SUCCESS &&
           cuModuleGetFunction(&spin, module, "spin_us") == CUDA_SUCCESS;
  }
  bool Spin(int us) {
    void* arguments[] = {&us};
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS;
  }
};

TEST(StandinProcess, the_environment_says_how_many_devices_there_are) {
  EXPECT_TRUE(RunsWell({{"STANDIN_CUDA_DEVICES", "3"}}, [] {
    int count = 0;
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 3;
  }));
}

TEST(StandinProcess, a_hidden_device_leaves_the_others_their_addresses) {
  EXPECT_TRUE(RunsWell({{"STANDIN_CUDA_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0"}}, [] {
    int count = 0;
    char address[32];
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2 &&
           cuDeviceGetPCIBusId(address, sizeof(address), 0) == CUDA_SUCCESS &&
           std::string(address) == "0000:12:00.0";
  }));
}

TEST(StandinProcess, no_device_may_be_visible) {
  EXPECT_TRUE(RunsWell({{"CUDA_VISIBLE_DEVICES", ""}}, [] { return cuInit(0) == CUDA_ERROR_NO_DEVICE; }));
}

TEST(StandinProcess, an_older_driver_does_not_know_newer_functions) {
  EXPECT_TRUE(RunsWell({{"STANDIN_CUDA_VERSION", "12040"}}, [] {
    int version = 0;
    void* function = nullptr;
    CUdriverProcAddressQueryResult status;
    return cuInit(0) == CUDA_SUCCESS && cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 12040 &&
           cuGetProcAddress("cuMemcpyBatchAsync", &function, 12040, 0, &status) == CUDA_SUCCESS &&
           function == nullptr && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }));
}

TEST(StandinProcess, faults_come_from_the_environment) {
  EXPECT_TRUE(RunsWell({{"STANDIN_CUDA_FAIL", "cuDeviceGetCount:2:999"}}, [] {
    int count = 0;
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS &&
           cuDeviceGetCount(&count) == CUDA_ERROR_UNKNOWN && cuDeviceGetCount(&count) == CUDA_SUCCESS;
  }));
}

class SharedDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "standin-cuda-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs a kernel of `us` in a child, and checks that it took between `least` and the maximum.
  pid_t Spinner(int us, const std::string& slice_us, std::chrono::milliseconds least,
                std::chrono::milliseconds most) {
    return Start({{"STANDIN_CUDA_SHARED", folder_}, {"STANDIN_CUDA_TIMESLICE_US", slice_us}}, [=] {
      Program program;
      if (!program.Prepare()) return false;
      const auto start = std::chrono::steady_clock::now();
      if (!program.Spin(us) || cuCtxSynchronize() != CUDA_SUCCESS) return false;
      const auto took = std::chrono::steady_clock::now() - start;
      return took >= least && took <= most;
    });
  }

  std::string folder_;
};

TEST_F(SharedDevice, two_processes_take_turns) {
  // Both want 200 ms: together neither is done before 300, even if one starts late.
  const pid_t one = Spinner(200'000, "2000", 300ms, 10s), other = Spinner(200'000, "2000", 300ms, 10s);
  EXPECT_TRUE(EndedWell(one));
  EXPECT_TRUE(EndedWell(other));
}

TEST_F(SharedDevice, a_long_slice_is_as_good_as_the_device_alone) {
  const pid_t low = Spinner(400'000, "500", 450ms, 10s);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(EndedWell(Spinner(100'000, "1000000", 99ms, 200ms)));
  EXPECT_TRUE(EndedWell(low));
}

TEST_F(SharedDevice, a_dead_process_keeps_nobody_waiting) {
  const pid_t dead = Spinner(10'000'000, "10000000", 0ms, 0ms);
  std::this_thread::sleep_for(50ms);
  kill(dead, SIGKILL);
  waitpid(dead, nullptr, 0);
  EXPECT_TRUE(EndedWell(Spinner(1000, "2000", 1ms, 10s)));
}

// fake_rm.cc answers the stand-in's ioctls in this program.
class ResourceManager : public testing::Test {
 protected:
  const Environment environment_{{"STANDIN_CUDA_CONTROL", "/dev/null"}};
};

TEST_F(ResourceManager, a_context_is_four_groups_of_which_one_computes) {
  using namespace standin::rm;
  EXPECT_TRUE(RunsWell(environment_, [] {
    Program program;
    if (!program.Prepare()) return false;
    const bool there = fake_rm_objects(kClassRootClient) == 1 && fake_rm_objects(kClassDevice) == 1 &&
                       fake_rm_objects(kClassGroup) == 4 && fake_rm_objects(kClassChannel) == 11 &&
                       fake_rm_objects(kClassCompute) == 1;
    if (!there || cuCtxDestroy(program.context) != CUDA_SUCCESS) return false;
    return fake_rm_objects(kClassGroup) == 0 && fake_rm_objects(kClassChannel) == 0 &&
           fake_rm_objects(kClassDevice) == 1;
  }));
}

TEST_F(ResourceManager, without_a_control_device_there_are_no_objects) {
  EXPECT_TRUE(RunsWell({}, [] {
    Program program;
    return program.Prepare() && fake_rm_objects(standin::rm::kClassRootClient) == 0;
  }));
}

TEST_F(ResourceManager, a_command_for_no_object_is_refused_and_any_can_be_made_to_fail) {
  using namespace standin::rm;
  EXPECT_TRUE(RunsWell(environment_, [] {
    Program program;
    if (!program.Prepare()) return false;
    uint64_t slice = 1;
    Control control{1, 2, kGroupSetTimeslice, 0, reinterpret_cast<uint64_t>(&slice), sizeof(slice), 0};
    if (ioctl(0, Request<Control>(kControl), &control) != 0 || control.status != kInvalidObject) return false;
    fake_rm_answer(kGroupSetTimeslice, kNotSupported);
    return ioctl(0, Request<Control>(kControl), &control) == 0 && control.status == kNotSupported &&
           fake_rm_controls(kGroupSetTimeslice) == 2;
  }));
}

}  // namespace
}  // namespace standin_test
