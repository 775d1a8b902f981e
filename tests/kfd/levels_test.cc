// Levels 2 and 3, from the program's call to the requests to the kernel's driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/pci_address.h"
#include "fixture.h"
#include "hip_api.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"
#include "standin_hsa.h"
#include "xsched/xsched.h"

namespace xsched::hip {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A fill stands for a kernel that runs until the test releases it.
std::atomic<int> begun{0};
std::atomic<int> may_end{0};
void Fill(const void*, const void*) {
  for (const int number = ++begun; may_end < number;) std::this_thread::sleep_for(milliseconds(1));
}

class Levels : public LevelsFixture {
 protected:
  void TearDown() override { may_end = 1'000'000; }

  // From now on a command runs until it is released.
  static void Slow() {
    for (const char* kernel : {"__amd_rocclr_fillBuffer", "__amd_rocclr_fillBufferAligned"}) {
      standin_hsa_set_kernel(kernel, Fill);
    }
  }
};

TEST_F(Levels, are_1_unless_more_is_asked_for) {
  Set(nullptr);
  hipStream_t stream = NewStream();
  EXPECT_GE(fake_kfd_queues(), 1u);
  EXPECT_FALSE(HasLevel(QueueOf(stream), kPreemptLevelDeactivate));
  Record();
  Suspend(QueueOf(stream));
  EXPECT_EQ(Record(), "");
  Resume(QueueOf(stream));
}

TEST_F(Levels, what_has_been_launched_stops_with_the_process_and_goes_on) {
  Set("3");
  hipStream_t stream = NewStream();
  XQueueHandle queue = QueueOf(stream);
  ASSERT_TRUE(HasLevel(queue, kPreemptLevelInterrupt));
  Slow();
  Launch(stream, 3);
  ASSERT_TRUE(Await([] { return begun == 1; }));
  Record();
  Suspend(queue);
  EXPECT_TRUE(NoneActive());
  EXPECT_THAT(Record(), HasSubstr(": 0 %, priority 7, ring "));
  // The software agent can stop only between kernels.
  may_end = 1;
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(begun, 1);
  may_end = 3;
  Resume(queue);
  EXPECT_THAT(Record(), HasSubstr(": 100 %, priority 7, ring "));
  SUCCEEDS(hipStreamSynchronize(stream));
  EXPECT_EQ(begun, 3);
}

TEST_F(Levels, the_null_stream_has_them_though_its_queue_comes_later) {
  Set("3");
  SUCCEEDS(hipMalloc(&memory_, 64));
  SUCCEEDS(hipMemsetAsync(memory_, 1, 64, nullptr));
  SUCCEEDS(hipStreamSynchronize(nullptr));
  EXPECT_TRUE(HasLevel(QueueOf(nullptr), kPreemptLevelInterrupt));
}

TEST_F(Levels, a_process_is_not_stopped_while_another_stream_of_it_is_at_work) {
  Set("3");
  hipStream_t stream = NewStream();
  hipStream_t other = NewStream();
  Slow();
  Launch(other, 1);
  Launch(stream, 1);
  Suspend(QueueOf(stream));
  EXPECT_TRUE(AllActive());
  may_end = 2;
  SUCCEEDS(hipStreamSynchronize(other));
  SUCCEEDS(hipStreamSynchronize(stream));
  Resume(QueueOf(stream));
}

TEST_F(Levels, a_launch_on_another_stream_lets_the_process_go_on) {
  Set("3");
  hipStream_t stream = NewStream();
  hipStream_t other = NewStream();
  Slow();
  Launch(stream, 1);
  Suspend(QueueOf(stream));
  EXPECT_TRUE(NoneActive());
  Launch(other, 1);
  EXPECT_TRUE(AllActive());
  may_end = 2;
  SUCCEEDS(hipStreamSynchronize(other));
  Resume(QueueOf(stream));
}

TEST_F(Levels, a_call_that_waits_for_everything_finds_it_at_work) {
  Set("3");
  hipStream_t stream = NewStream();
  Slow();
  Launch(stream, 2);
  Suspend(QueueOf(stream));
  EXPECT_TRUE(NoneActive());
  may_end = 2;
  SUCCEEDS(hipDeviceSynchronize());
  EXPECT_EQ(begun, 2);
  Resume(QueueOf(stream));
  EXPECT_TRUE(AllActive());
}

TEST_F(Levels, a_suspended_stream_can_be_destroyed) {
  Set("3");
  hipStream_t stream = NewStream();
  hipStream_t other = NewStream();
  Slow();
  Launch(stream, 2);
  Launch(other, 1);
  Suspend(QueueOf(stream));
  Suspend(QueueOf(other));
  EXPECT_TRUE(NoneActive());
  may_end = 3;
  SUCCEEDS(hipStreamDestroy(stream));
  Resume(QueueOf(other));
  EXPECT_TRUE(AllActive());
}

TEST_F(Levels, another_gpu_goes_on) {
  Set("3");
  hipStream_t stream = NewStream();
  const uint32_t queues = fake_kfd_queues();
  SUCCEEDS(hipSetDevice(1));
  NewStream();
  const uint32_t on_other = fake_kfd_queues() - queues;
  ASSERT_GE(on_other, 1u);
  Slow();
  SUCCEEDS(hipSetDevice(0));
  Launch(stream, 1);
  Suspend(QueueOf(stream));
  EXPECT_EQ(fake_kfd_active_queues(), on_other);
  may_end = 1;
  Resume(QueueOf(stream));
  SUCCEEDS(hipStreamSynchronize(stream));
}

TEST_F(Levels, a_stream_with_a_hardware_queue_of_its_own_is_stopped_alone) {
  Set("2", "16");
  hipStream_t stream = NewStream();
  hipStream_t other = NewStream();
  XQueueHandle queue = QueueOf(stream);
  ASSERT_TRUE(HasLevel(queue, kPreemptLevelDeactivate));
  EXPECT_FALSE(HasLevel(queue, kPreemptLevelInterrupt));
  Slow();
  Launch(stream, 2);
  ASSERT_TRUE(Await([] { return begun == 1; }));
  Suspend(queue);
  EXPECT_EQ(fake_kfd_active_queues(), fake_kfd_queues() - 1);
  may_end = 2;
  Launch(other, 1);
  SUCCEEDS(hipStreamSynchronize(other));
  EXPECT_EQ(begun, 2);
  may_end = 3;
  Resume(queue);
  SUCCEEDS(hipStreamSynchronize(stream));
  EXPECT_EQ(begun, 3);
}

TEST_F(Levels, streams_that_share_hardware_queues_are_stopped_with_the_process) {
  Set("3", "2");
  hipStream_t streams[4];
  for (hipStream_t& stream : streams) stream = NewStream();
  Slow();
  Launch(streams[3], 1);
  for (hipStream_t stream : streams) Suspend(QueueOf(stream));
  EXPECT_TRUE(NoneActive());
  may_end = 1;
  for (hipStream_t stream : streams) Resume(QueueOf(stream));
  EXPECT_TRUE(AllActive());
}

TEST_F(Levels, when_the_driver_refuses_level_1_is_left_and_all_goes_on) {
  Set("3");
  hipStream_t stream = NewStream();
  Slow();
  Launch(stream, 2);
  fake_kfd_fail_update(1, EINVAL);
  ::testing::internal::CaptureStderr();
  Suspend(QueueOf(stream));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("HIP runs with preemption level 1 from now on"));
  EXPECT_TRUE(AllActive());
  may_end = 2;
  SUCCEEDS(hipStreamSynchronize(stream));
  // Level 1: the next launch waits.
  std::atomic<bool> launched{false};
  std::thread launcher([&] {
    Launch(stream, 1);
    launched = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(launched);
  may_end = 3;
  Resume(QueueOf(stream));
  launcher.join();
  SUCCEEDS(hipStreamSynchronize(stream));
}

TEST_F(Levels, a_program_that_ends_suspended_leaves_nothing_so) {
  Set("3");
  EXPECT_EXIT(
      {
        // Registered before XSched's own handler, so it runs after it.
        static bool was_suspended = false;
        atexit([] { _exit(was_suspended && AllActive() ? 0 : 1); });
        hipStream_t stream = NewStream();
        Slow();
        Launch(stream, 1);
        Suspend(QueueOf(stream));
        was_suspended = NoneActive();
        may_end = 1;
        exit(2);
      },
      ::testing::ExitedWithCode(0), "");
}

// ---- under a scheduler ----

// The local scheduler.
class LocallyScheduled : public Levels {
 protected:
  void SetUp() override {
    Levels::SetUp();
    setenv("XSCHED_SCHEDULER", "LCL", 1);
    setenv("XSCHED_POLICY", "HPF", 1);
  }
};

TEST_F(LocallyScheduled, a_stream_with_its_own_queue_makes_way_for_a_more_urgent_one_of_its_process) {
  Set("3", "16");
  hipStream_t low = NewStream();
  hipStream_t high = NewStream();
  ASSERT_EQ(XHintPriority(QueueOf(high), 10), kXSchedSuccess);
  Slow();
  Launch(low, 2);
  ASSERT_TRUE(Await([] { return begun == 1; }));
  Record();
  Launch(high, 1);
  ASSERT_TRUE(AwaitSuspension());
  may_end = 2;
  SUCCEEDS(hipStreamSynchronize(high));
  EXPECT_TRUE(Await(AllActive));
  may_end = 3;
  SUCCEEDS(hipStreamSynchronize(low));
}

// A server. A rival wants the same GPU.
class Scheduled : public Levels {
 protected:
  void SetUp() override {
    Levels::SetUp();
    ASSERT_TRUE(server_.ready()) << server_.errors();
    setenv("XSCHED_SCHEDULER", "GLB", 1);
    setenv("XSCHED_SOCKET", server_.socket().text, 1);
    Set("3");
    stream_ = NewStream();
    ASSERT_TRUE(rival_.CreateQueue(0, 10, MakeDevice(kDeviceTypeGPU, PciAddress(0, 5, 0, 0))));
    Slow();
  }
  // A rival comes while this process has launched work.
  void RivalComes() {
    Launch(stream_, 3);
    ASSERT_TRUE(Await([] { return begun == 1; }));
    Record();
    rival_.Submit(0);
    ASSERT_TRUE(AwaitSuspension());
  }

  server::testing::TempFolder folder_;
  server::testing::ServerProcess server_{XSERVER_PROGRAM, folder_.path() + "/xserver.sock"};
  server::testing::TestAgent rival_{server_.socket()};
  hipStream_t stream_ = nullptr;
};

TEST_F(Scheduled, a_process_is_stopped_while_a_more_urgent_one_has_work) {
  RivalComes();
  may_end = 3;
  rival_.RetireAll(0);
  EXPECT_TRUE(Await(AllActive));
  SUCCEEDS(hipStreamSynchronize(stream_));
}

TEST_F(Scheduled, a_process_goes_on_when_the_server_is_gone) {
  RivalComes();
  server_.Signal(SIGKILL);
  EXPECT_TRUE(Await(AllActive));
  may_end = 3;
  SUCCEEDS(hipStreamSynchronize(stream_));
}

}  // namespace
}  // namespace xsched::hip

int main(int argc, char** argv) {
  // Its child processes must not be scheduled.
  unsetenv("LD_PRELOAD");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
