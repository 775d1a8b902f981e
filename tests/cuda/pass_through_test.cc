// XSCHED_PASSTHROUGH_LIBS and XSCHED_PASSTHROUGH_FILE.
#include <stdlib.h>
#include <unistd.h>

#include <string_view>

#include "launching_library.h"
#include "scheduled.h"

namespace xsched::cuda {
namespace {

class PassThroughLibraries : public CudaProgram {
 protected:
  // The variables are read at the first command, which each test makes after it has set them.
  void SetUp() override {}
  void Prepare(const char* libraries) {
    if (libraries != nullptr) setenv("XSCHED_PASSTHROUGH_LIBS", libraries, 1);
    CudaProgram::SetUp();
    stream_ = NewStream();
  }
  CUresult LaunchThere() const { return LaunchFromLibrary(stream_, memory_, kCount); }

  CUstream stream_ = nullptr;
};

TEST_F(PassThroughLibraries, by_default_a_librarys_commands_are_scheduled) {
  Prepare(nullptr);
  ASSERT_EQ(LaunchThere(), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

TEST_F(PassThroughLibraries, a_named_librarys_commands_pass_and_the_programs_are_scheduled) {
  Prepare("libother,liblaunching");
  for (int i = 0; i < 10; ++i) ASSERT_EQ(LaunchThere(), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream_)));
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(LaunchThere(), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(StateOf(stream_), kQueueStateIdle);
}

TEST_F(PassThroughLibraries, a_named_librarys_waits_for_events_are_no_commands) {
  Prepare("liblaunching");
  const CUstream other = NewStream();
  Word open;
  open.Make();
  ASSERT_EQ(cuStreamWaitValue32_v2(other, open.device, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  // Other queues are scheduled against it.
  preempt::FindXQueue(kPlatformCUDA, KeyOf(other))->block().flags = ipc::kFlagTracked;
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, other), CUDA_SUCCESS);
  ASSERT_EQ(WaitFromLibrary(stream_, event), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream_)));
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(WaitFromLibrary(stream_, event), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u) << "the program's";
  *open.host = 1;
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(PassThroughLibraries, a_function_is_named_in_a_file_whatever_its_variant) {
  char path[] = "/tmp/xsched-pass-XXXXXX";
  const int file = mkstemp(path);
  constexpr std::string_view kRules = R"({"functions": {"cuMemsetD32Async": "passthrough"}})";
  ASSERT_EQ(write(file, kRules.data(), kRules.size()), static_cast<ssize_t>(kRules.size()));
  close(file);
  setenv("XSCHED_PASSTHROUGH_FILE", path, 1);
  Prepare(nullptr);
  ASSERT_EQ(LaunchThere(), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream_), CUDA_SUCCESS);
  EXPECT_FALSE(HasQueue(KeyOf(stream_)));
  ASSERT_EQ(cuMemsetD8Async(memory_, 0, kCount, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  unlink(path);
}

TEST_F(PassThroughLibraries, another_librarys_name_changes_nothing) {
  Prepare("libother");
  ASSERT_EQ(LaunchThere(), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
}

}  // namespace
}  // namespace xsched::cuda
