// Calls that pass unscheduled, and what is logged. The environment is read once, so each test has its own
// process.
#include <stdlib.h>

#include "shim/hip/testing/runtime_instance.h"

extern "C" hipError_t hipMemset(void*, int, size_t);
extern "C" hipError_t hipMemsetAsync(void*, int, size_t, hipStream_t);

namespace xsched::hip {
namespace {

class HipPassThrough : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Exits with 0 if, of the library's one set and one launch, `commands` were counted.
  [[noreturn]] static void Run(uint64_t commands) {
    RuntimeInstance instance;
    hipStream_t stream = instance.NewStream();
    instance.Library("LibrarySet", stream);
    instance.Library("LibrarySet", stream);
    instance.Library("LibraryLaunch", stream);
    const bool right = instance.Launched(stream) == 3 && Commands(KeyOf(stream)) == commands;
    instance.~RuntimeInstance();
    if (const char* file = getenv("XSCHED_PASSTHROUGH_FILE")) std::filesystem::remove(file);
    _exit(right ? 0 : 1);
  }

  static void WriteFile(const char* text) {
    const std::string path =
        std::filesystem::temp_directory_path() / ("xsched-pass-" + std::to_string(getpid()) + ".json");
    std::ofstream(path) << text;
    setenv("XSCHED_PASSTHROUGH_FILE", path.c_str(), 1);
  }
};

TEST_F(HipPassThrough, nothing_does_by_default) { EXPECT_EXIT(Run(3), testing::ExitedWithCode(0), "^$"); }

TEST_F(HipPassThrough, a_listed_library_passes_and_is_reported_once) {
  EXPECT_EXIT(
      {
        setenv("XSCHED_PASSTHROUGH_LIBS", "libother.so,liblinked.so", 1);
        setenv("XSCHED_VERBOSE", "1", 1);
        Run(0);
      },
      testing::ExitedWithCode(0),
      "^\\[XSched\\] HIP: [^\n]*liblinked.so uses [^\n]*libamdhip64.so.[0-9]*\n"
      "\\[XSched\\] Passthrough: [^\n]*liblinked.so\n$");
}

TEST_F(HipPassThrough, a_file_says_more) {
  EXPECT_EXIT(
      {
        WriteFile(R"({"passthrough_mode": "whitelist", "libraries": ["liblinked.so"],
                      "functions": {"hipExtModuleLaunchKernel": "schedule"}})");
        Run(1);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(HipPassThrough, all_but_the_listed_may_pass) {
  EXPECT_EXIT(
      {
        WriteFile(R"({"passthrough_mode": "blacklist", "libraries": ["libmine.so"]})");
        Run(0);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(HipPassThrough, a_function_may_pass_for_every_caller) {
  EXPECT_EXIT(
      {
        WriteFile(R"({"functions": {"hipMemsetAsync": "passthrough"}})");
        Run(1);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(HipPassThrough, a_missing_file_is_reported) {
  EXPECT_EXIT(
      {
        setenv("XSCHED_PASSTHROUGH_FILE", "/nowhere/pass.json", 1);
        Run(3);
      },
      testing::ExitedWithCode(0), "/nowhere/pass.json: No such file");
}

TEST_F(HipPassThrough, libraries_that_look_functions_up_are_reported) {
  EXPECT_EXIT(
      {
        setenv("XSCHED_VERBOSE", "1", 1);
        {
          RuntimeInstance instance;
          instance.Call(hipMemsetAsync, "hipMemsetAsync", nullptr, 0, 0, nullptr);
          instance.Call(hipMemset, "hipMemset", nullptr, 0, 0);
        }
        _exit(0);
      },
      testing::ExitedWithCode(0),
      "^\\[XSched\\] HIP: [^\n]*shim_hip_test uses [^\n]*libamdhip64.so.[0-9]*\n$");
}

TEST_F(HipPassThrough, a_file_with_a_fault_is_reported_and_ignored) {
  EXPECT_EXIT(
      {
        WriteFile("{\n\"libraries\": liblinked}");
        Run(3);
      },
      testing::ExitedWithCode(0), "line 2 is not understood");
}

}  // namespace
}  // namespace xsched::hip
