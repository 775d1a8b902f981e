// The local scheduler: a policy for the queues of one process, over the software device.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMillisecond = 1000;  // in SoftLaunch's unit
constexpr XDeviceId kDevice = 3;

class LocalScheduler : public testing::Test {
 protected:
  struct Queue {
    HwQueueHandle hwq = 0;
    XQueueHandle xqueue = 0;

    explicit Queue(Priority priority) {
      EXPECT_EQ(SoftQueueCreate(&hwq, kDevice, kPreemptLevelBlock), kXSchedSuccess);
      EXPECT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
      EXPECT_EQ(XQueueSetLaunchConfig(xqueue, 2, 1), kXSchedSuccess);
      EXPECT_EQ(XHintPriority(xqueue, priority), kXSchedSuccess);
    }
    ~Queue() {
      EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
      EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
    }
    void Launch(int count) const {
      for (int i = 0; i < count; ++i)
        ASSERT_EQ(SoftLaunch(hwq, kMillisecond, nullptr, nullptr), kXSchedSuccess);
    }
    uint64_t Finished() const {
      uint64_t finished = 0;
      SoftQueueReport(hwq, &finished, nullptr);
      return finished;
    }
    void Synchronize() const { EXPECT_EQ(SoftSynchronize(hwq), kXSchedSuccess); }
  };

  void SetUp() override {
    ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  }
  void TearDown() override { XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown); }

  // Both queues have 200 commands. Returns how many of the low one's had finished when all of the high one's
  // had.
  uint64_t LowFinishedBeforeHigh() {
    uint64_t before = low_.Finished();
    low_.Launch(200);
    std::this_thread::sleep_for(milliseconds(10));
    high_.Launch(200);
    high_.Synchronize();
    uint64_t finished = low_.Finished() - before;
    low_.Synchronize();
    EXPECT_EQ(low_.Finished() - before, 200u) << "nothing is lost";
    return finished;
  }

  Queue low_{0};
  Queue high_{5};
};

TEST_F(LocalScheduler, an_urgent_queue_holds_the_others_of_its_process) {
  EXPECT_LT(LowFinishedBeforeHigh(), 60u);
}

TEST_F(LocalScheduler, without_a_scheduler_the_device_takes_turns_and_with_one_again_it_does_not) {
  ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
  EXPECT_GT(LowFinishedBeforeHigh(), 120u) << "the order is that of arrival";
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  EXPECT_LT(LowFinishedBeforeHigh(), 60u);
}

TEST_F(LocalScheduler, a_scheduler_that_goes_leaves_nobody_held) {
  high_.Launch(300);
  low_.Launch(20);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LE(low_.Finished(), 4u);
  ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
  low_.Synchronize();
  high_.Synchronize();
}

TEST_F(LocalScheduler, priorities_change_while_queues_run) {
  EXPECT_EQ(XHintPriority(low_.xqueue, 10), kXSchedSuccess);
  EXPECT_GT(LowFinishedBeforeHigh(), 180u) << "the low one is the urgent one now";
}

TEST_F(LocalScheduler, what_the_program_suspended_stays_so_whatever_the_scheduler_wants) {
  ASSERT_EQ(XQueueSuspend(high_.xqueue, kQueueSuspendFlagNone), kXSchedSuccess);
  high_.Launch(20);
  low_.Launch(20);
  low_.Synchronize();
  EXPECT_EQ(high_.Finished(), 0u) << "and does not hold the others up";
  ASSERT_EQ(XQueueResume(high_.xqueue, kQueueResumeFlagNone), kXSchedSuccess);
  high_.Synchronize();
}

TEST_F(LocalScheduler, a_policy_that_is_not_there_is_refused_and_the_old_one_stays) {
  EXPECT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyMax), kXSchedErrorNotSupported);
  EXPECT_EQ(XHintSetScheduler(kSchedulerMax, kPolicyUnknown), kXSchedErrorInvalidValue);
  EXPECT_LT(LowFinishedBeforeHigh(), 60u);
}

}  // namespace
