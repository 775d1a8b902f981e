// A hard stop: the program suspends its streams at level 3. The stand-in's resource manager acts on the
// stand-in device.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "fake_rm.h"
#include "fixture.h"
#include "preempt/queue/xqueue.h"
#include "rm_abi.h"
#include "standin.h"
#include "xsched/cuda/hal.h"

namespace xsched::cuda {
namespace {

using std::chrono::milliseconds;
using namespace standin::rm;

class HardStop : public CudaProgram {
 protected:
  void SetUp() override { Prepare(); }

  void Prepare() {
    CudaProgram::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&spin_, module, "spin_us"), CUDA_SUCCESS);
    stream_ = NewStream();
    ASSERT_EQ(Spin(stream_, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    queue_ = QueueOfStream(stream_);
    ASSERT_EQ(XQueueSetPreemptLevel(queue_, kPreemptLevelInterrupt), kXSchedSuccess);
  }

  static XQueueHandle QueueOfStream(CUstream stream) {
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    EXPECT_EQ(CudaQueueGet(&hwq, stream), kXSchedSuccess);
    EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
    return queue;
  }
  CUresult Spin(CUstream stream, int us) const {
    void* arguments[] = {&us};
    return cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  }
  // Starts a kernel of `us` on the stream, and waits until it runs.
  void Begin(CUstream stream, int us) const {
    const uint64_t before = standin_pending(0);
    ASSERT_EQ(Spin(stream, us), CUDA_SUCCESS);
    while (standin_pending(0) == before) continue;
    std::this_thread::sleep_for(milliseconds(2));
  }
  static bool Runs() { return standin_scheduled(0) != 0; }

  CUfunction spin_ = nullptr;
  CUstream stream_ = nullptr;
  XQueueHandle queue_ = 0;
};

TEST_F(HardStop, disables_the_channels_and_a_resume_enables_them) {
  Begin(stream_, 100'000);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_FALSE(Runs());
  EXPECT_EQ(fake_rm_controls(kSubdeviceDisableChannels), 1u);
  const uint64_t busy = standin_busy_ns(0);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(standin_busy_ns(0), busy);

  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_TRUE(Runs());
  EXPECT_EQ(fake_rm_controls(kSubdeviceDisableChannels), 2u);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_GE(standin_busy_ns(0), 100'000'000u);
}

TEST_F(HardStop, in_the_middle_of_a_kernel_is_enough_for_a_call_that_waits_until_the_stream_stands) {
  Begin(stream_, 50'000);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  EXPECT_FALSE(Runs());
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(HardStop, below_level_3_asks_nothing_of_the_resource_manager) {
  ASSERT_EQ(XQueueSetPreemptLevel(queue_, kPreemptLevelDeactivate), kXSchedSuccess);
  Begin(stream_, 10'000);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_TRUE(Runs());
  EXPECT_EQ(fake_rm_controls(kSubdeviceDisableChannels), 0u);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
}

TEST_F(HardStop, spares_what_else_of_the_process_is_at_work) {
  CUstream other = NewStream();
  Begin(other, 30'000);
  ASSERT_EQ(Spin(stream_, 1000), CUDA_SUCCESS);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_TRUE(Runs());
  EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
}

TEST_F(HardStop, is_lifted_by_a_launch_on_another_stream_and_the_suspended_one_stays_at_its_gate) {
  CUstream other = NewStream();
  ASSERT_EQ(Spin(other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_FALSE(Runs());
  ASSERT_EQ(Spin(stream_, 1000), CUDA_SUCCESS);
  EXPECT_FALSE(Runs());
  ASSERT_EQ(Spin(other, 1000), CUDA_SUCCESS);
  EXPECT_TRUE(Runs());
  ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_GE(standin_pending(0), 1u) << "what is suspended";
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(HardStop, makes_way_for_a_call_that_waits_for_everything) {
  Begin(stream_, 10'000);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_FALSE(Runs());
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_FALSE(Runs());
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_TRUE(Runs());
}

TEST_F(HardStop, ends_with_its_queue) {
  Begin(stream_, 10'000);
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_FALSE(Runs());
  ASSERT_EQ(cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(Runs());
}

TEST_F(HardStop, that_the_resource_manager_refuses_is_a_stop_at_the_next_gate) {
  fake_rm_answer(kSubdeviceDisableChannels, kNotSupported);
  Begin(stream_, 10'000);
  EXPECT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_TRUE(Runs());
  ASSERT_EQ(Spin(stream_, 1000), CUDA_SUCCESS);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GE(standin_pending(0), 1u);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

// ---- the end of the process ----

class Exit : public HardStop {
 protected:
  void SetUp() override {}
};

TEST_F(Exit, lets_a_stopped_process_go_on) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    // Runs after XSched's own handler, which is registered later. Without that handler, this would never end.
    atexit([] {
      while (standin_pending(0) != 0) usleep(1000);
      _exit(Runs() ? 0 : 2);
    });
    Prepare();
    Begin(stream_, 10'000);
    if (XQueueSuspend(queue_, kQueueSuspendFlagNone) != kXSchedSuccess || Runs() || HasFailure()) _exit(3);
    exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- whether there is a level 3 ----

class Level3 : public HardStop {
 protected:
  void SetUp() override {}

  // Asks for level 3. Returns the level that the queue has then.
  XPreemptLevel BestLevel() {
    CudaProgram::SetUp();  // without HardStop's  NOLINT(bugprone-parent-virtual-call)
    stream_ = NewStream();
    EXPECT_EQ(Launch(stream_), CUDA_SUCCESS);
    EXPECT_EQ(XQueueSetPreemptLevel(QueueOfStream(stream_), kPreemptLevelInterrupt), kXSchedSuccess);
    return preempt::FindXQueue(kPlatformCUDA, KeyOf(stream_))->level();
  }
};

TEST_F(Level3, is_there_where_the_resource_manager_answers) {
  EXPECT_EQ(BestLevel(), kPreemptLevelInterrupt);
}

TEST_F(Level3, is_not_under_mps_and_level_2_is) {
  std::string folder = std::filesystem::temp_directory_path() / "xsched-mps-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/control") << "";
  setenv("CUDA_MPS_PIPE_DIRECTORY", folder.c_str(), 1);
  setenv("XSCHED_LOG", "info", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(BestLevel(), kPreemptLevelDeactivate);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("under MPS"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_F(Level3, is_not_where_it_refuses_and_level_2_is) {
  setenv("XSCHED_LOG", "info", 1);
  fake_rm_answer(kGroupGetTimeslice, kNotSupported);
  testing::internal::CaptureStderr();
  EXPECT_EQ(BestLevel(), kPreemptLevelDeactivate);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("preemption level 2 at most"), std::string::npos);
}

}  // namespace
}  // namespace xsched::cuda
