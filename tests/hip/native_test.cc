// What people met without XSched or with a scheduler that opens a runtime of its own: how AMD's runtime
// behaves when what belongs to one copy of it reaches another. No part of XSched is in this process.
// two_copies_test.cc does the same under it.
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>

#include "standin_hsa.h"
#include "two_copies.h"

namespace xsched::hip {
namespace {

class Native : public TwoCopies {};

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

TEST_F(Native, there_are_two_copies_of_hip_over_one_hsa) {
  EXPECT_EQ(LoadedFiles("libamdhip64").size(), 2u);
  EXPECT_EQ(LoadedFiles("libhsa-runtime64").size(), 1u);
}

TEST_F(Native, a_program_works_with_its_own_copy) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 7));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  int log[2] = {};
  SUCCEEDS(PROGRAM(ProgramRead)(log, log_, sizeof log));
  EXPECT_EQ(log[0], 1);
  EXPECT_EQ(log[1], 7);
}

TEST_F(Native, a_program_with_the_other_copy_works_beside_it) {
  hipStream_t other = nullptr;
  void* memory = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&other));
  SUCCEEDS(OTHER(ProgramMemory)(&memory, 64));
  SUCCEEDS(OTHER(ProgramAppend)(other, static_cast<int*>(memory), 7));
  SUCCEEDS(OTHER(ProgramSynchronize)(other));
  EXPECT_EQ(LoadedFiles("libamdhip64").size(), 2u);
}

// What a library finds that asks the dynamic linker for "the next" definition, preloaded or loaded late:
// neither copy is in the scope that is searched.
TEST_F(Native, no_copy_is_found_behind_a_library_that_interposes) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "hipLaunchKernel"), nullptr);
  EXPECT_EQ(dlsym(RTLD_NEXT, "hipLaunchKernel"), nullptr);
}

TEST_F(Native, a_stream_of_one_copy_is_a_destroyed_context_to_the_other) {
  EXPECT_EQ(INSTALLED(hipStreamSynchronize)(stream_), hipErrorContextIsDestroyed);
  EXPECT_EQ(INSTALLED(hipStreamQuery)(stream_), hipErrorContextIsDestroyed);
}

TEST_F(Native, a_kernel_registered_with_one_copy_is_an_invalid_function_to_the_other) {
  int value = 7;
  void* arguments[] = {&log_, &value};
  EXPECT_EQ(INSTALLED(hipLaunchKernel)(PROGRAM(ProgramKernel)(), dim3(1), dim3(64), arguments, 0, nullptr),
            hipErrorInvalidDeviceFunction);
}

// What rocBLAS's and MIOpen's kernels came to. Whether the runtime reports it or crashes depends on its
// version.
TEST_F(Native, a_module_of_one_copy_cannot_be_launched_in_the_other) {
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
  auto failed = [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; };
  EXPECT_EXIT(_exit(launch() ? 0 : 1), failed, "");
}

// Which is why it looked as if only launches were wrong.
TEST_F(Native, memory_of_one_copy_can_be_used_in_the_other) {
  int log[2] = {};
  EXPECT_EQ(INSTALLED(hipMemcpy)(log, log_, sizeof log, hipMemcpyDefault), hipSuccess);
}

}  // namespace
}  // namespace xsched::hip
