// What people met without XSched or with a scheduler that opens a runtime of its own: how AMD's runtime
// behaves when what belongs to one runtime instance reaches another. No part of XSched is in this process.
// two_instances_test.cc does the same under it.
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "standin_hsa.h"
#include "two_instances.h"

namespace xsched::hip {
namespace {

class Native : public TwoInstances {
 protected:
  // Of a process that reports it, or crashes.
  static bool Failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }
};

std::set<std::string> LoadedFiles(const char* part) {
  std::pair<const char*, std::set<std::string>> found{part, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<decltype(found)*>(data);
        if (std::strstr(info->dlpi_name, wanted.first) != nullptr) wanted.second.insert(info->dlpi_name);
        return 0;
      },
      &found);
  return found.second;
}

TEST_F(Native, there_are_two_instances_of_hip_over_one_hsa) {
  EXPECT_EQ(LoadedFiles("libamdhip64").size(), 2u);
  EXPECT_EQ(LoadedFiles("libhsa-runtime64").size(), 1u);
}

TEST_F(Native, a_program_works_with_its_own_instance) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 7));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  int log[2] = {};
  SUCCEEDS(PROGRAM(ProgramRead)(log, log_, sizeof log));
  EXPECT_EQ(log[0], 1);
  EXPECT_EQ(log[1], 7);
}

TEST_F(Native, a_program_with_the_other_instance_works_beside_it) {
  hipStream_t other = nullptr;
  void* memory = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&other));
  SUCCEEDS(OTHER(ProgramMemory)(&memory, 64));
  SUCCEEDS(OTHER(ProgramAppend)(other, static_cast<int*>(memory), 7));
  SUCCEEDS(OTHER(ProgramSynchronize)(other));
  EXPECT_EQ(LoadedFiles("libamdhip64").size(), 2u);
}

// What a library finds that asks the dynamic linker for "the next" definition, preloaded or loaded late:
// neither instance is in the scope that is searched.
TEST_F(Native, no_instance_is_found_behind_a_library_that_interposes) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "hipLaunchKernel"), nullptr);
  EXPECT_EQ(dlsym(RTLD_NEXT, "hipLaunchKernel"), nullptr);
}

// A kernel that appends 1 runs until it may end.
std::atomic<bool> may_end{false};
std::atomic<int> ended{0};
void AwaitEnd(const void* arguments, const void*) {
  int value = 0;
  std::memcpy(&value, static_cast<const char*>(arguments) + sizeof(int*), sizeof value);
  while (value == 1 && !may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++ended;
}

// The HAL asks about the null stream so. Asked by the handle 0, it would wait for `stuck`, and `other` for
// it.
TEST_F(Native, from_hip_6_4_on_a_query_of_the_null_stream_by_the_handle_1_has_no_effect_on_other_streams) {
  int version = 0;
  SUCCEEDS(PROGRAM(hipRuntimeGetVersion)(&version));
  if (version < 60400000) GTEST_SKIP() << "some builds crash";
  standin_hsa_set_kernel("append", AwaitEnd);
  hipStream_t stuck = nullptr;
  hipStream_t other = nullptr;
  SUCCEEDS(PROGRAM(hipStreamCreate)(&stuck));
  SUCCEEDS(PROGRAM(hipStreamCreate)(&other));
  SUCCEEDS(PROGRAM(ProgramAppend)(nullptr, log_, 0));
  SUCCEEDS(PROGRAM(hipStreamSynchronize)(nullptr));
  SUCCEEDS(PROGRAM(ProgramAppend)(stuck, log_, 1));
  EXPECT_EQ(PROGRAM(hipStreamQuery)(reinterpret_cast<hipStream_t>(1)), hipSuccess);
  SUCCEEDS(PROGRAM(ProgramAppend)(other, log_, 2));
  for (int i = 0; i < 10'000 && ended != 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ended, 2) << "the null stream's, and the other one's";
  may_end = true;
  SUCCEEDS(PROGRAM(hipStreamSynchronize)(stuck));
}

// The HAL distinguishes instances by this.
TEST_F(Native, each_instance_says_which_streams_are_its_own) {
  hipStream_t other = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&other));
  EXPECT_EQ(INSTALLED(hipGetStreamDeviceId)(other), 0);
  EXPECT_EQ(INSTALLED(hipGetStreamDeviceId)(stream_), -1);
}

TEST_F(Native, before_rocm_7_a_stream_of_one_instance_is_a_destroyed_context_to_the_other) {
  if (InstalledVersion() >= 70000000) GTEST_SKIP() << "it is taken for one of its own";
  EXPECT_EQ(INSTALLED(hipStreamSynchronize)(stream_), hipErrorContextIsDestroyed);
  EXPECT_EQ(INSTALLED(hipStreamQuery)(stream_), hipErrorContextIsDestroyed);
}

// ROCm 7.2 takes what it does not know for a handle, and may crash.
TEST_F(Native, a_kernel_registered_with_one_instance_is_an_invalid_function_to_the_other) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto launch = [this] {
    int value = 7;
    void* arguments[] = {&log_, &value};
    return INSTALLED(hipLaunchKernel)(PROGRAM(ProgramKernel)(), dim3(1), dim3(64), arguments, 0, nullptr);
  };
  if (InstalledVersion() < 70200000) {
    EXPECT_EQ(launch(), hipErrorInvalidDeviceFunction);
  } else {
    EXPECT_EXIT(_exit(launch()), Failed, "");
  }
}

// What rocBLAS's and MIOpen's kernels came to. Whether the runtime reports it or crashes depends on its
// version.
TEST_F(Native, a_module_of_one_instance_cannot_be_launched_in_the_other) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto launch = [this] {
    hipFunction_t function = nullptr;
    if (PROGRAM(ProgramFunction)(&function, "append") != hipSuccess) return true;
    int value = 7;
    void* arguments[] = {&log_, &value};
    return INSTALLED(hipModuleLaunchKernel)(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) ==
               hipSuccess &&
           INSTALLED(hipDeviceSynchronize)() == hipSuccess && standin_hsa_dispatches("append") == 1;
  };
  EXPECT_EXIT(_exit(launch() ? 0 : 1), Failed, "");
}

// Which is why it looked as if only launches were wrong.
TEST_F(Native, memory_of_one_instance_can_be_used_in_the_other) {
  int log[2] = {};
  EXPECT_EQ(INSTALLED(hipMemcpy)(log, log_, sizeof log, hipMemcpyDefault), hipSuccess);
}

}  // namespace
}  // namespace xsched::hip
