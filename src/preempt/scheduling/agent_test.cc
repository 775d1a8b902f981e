// The agent in virtual time, with the scheduler of this process, and without a thread: a test is the thread.
#include "preempt/scheduling/agent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "ipc/control_access.h"
#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;

class FakeThread final : public AgentThread {
 public:
  int Start(Work& what) override {
    if (refuses) return EAGAIN;
    ++started;
    work = &what;
    return 0;
  }
  Work* work = nullptr;  // null: no thread runs
  int started = 0;
  bool refuses = false;
};

class AgentTest : public FakeProcess {
 protected:
  void TearDown() override {
    agent_.Shutdown();
    FakeProcess::TearDown();
  }
  // Starts the scheduler of this process, with a low and a high queue.
  void Start() {
    ASSERT_TRUE(agent_.Start({.scheduler = kSchedulerLocal}));
    low_queue_ = &Make(low_);
    high_queue_ = &Make(high_, kPreemptLevelDeactivate);
    sched::Hints hints = high_queue_->hints();
    hints.priority = 5;
    high_queue_->SetHints(hints);
    for (XQueue* queue : {low_queue_, high_queue_}) agent_.QueueCreated(*queue);
  }
  // What the thread does for `time`, each millisecond. Returns when it would wake by itself.
  TimePoint Attend(Duration time = milliseconds(1)) {
    TimePoint wake_at = kNever;
    for (const TimePoint until = fake_now + time; fake_now < until && thread_.work != nullptr;) {
      fake_now += milliseconds(1);
      const std::optional<TimePoint> next = thread_.work->Attend(fake_now);
      if (!next) thread_.work = nullptr;
      wake_at = next.value_or(kNever);
    }
    return wake_at;
  }
  static int64_t InMs(TimePoint at) {
    return std::chrono::duration_cast<milliseconds>(at - fake_now).count();
  }
  static bool MayRun(const XQueue& queue) { return queue.block().gate == ipc::kGateRun; }

  ipc::ControlBlock* ResetBlock(uint32_t index) override { return memory_.ResetBlock(index); }
  void RingScheduler(uint32_t index) override { agent_.RingScheduler(index); }
  void Wake() override { agent_.Wake(); }
  void SomethingIsTaken() override { agent_.SomethingIsTaken(); }
  bool GiveBackLater() override { return agent_.GiveBackLater(); }
  void QueueDestroyed(XQueue& queue) override { agent_.QueueDestroyed(queue); }

  FakeDriver low_{kGatingHostGates};
  FakeDriver high_{kGatingHostGates, kPreemptLevelDeactivate};
  XQueue* low_queue_ = nullptr;
  XQueue* high_queue_ = nullptr;
  ProcessSlices slices_;
  FakeThread thread_;
  ControlMemory memory_{table, state};
  MemoryLimit memory_limit_{memory_};
  Agent agent_{memory_, memory_limit_, table, urgencies, slices_, *this, state, thread_, &FakeNow};
};

TEST_F(AgentTest, without_a_scheduler_there_is_no_thread) {
  ASSERT_TRUE(agent_.Start({.scheduler = kSchedulerAppManaged}));
  EXPECT_EQ(thread_.started, 0);
  EXPECT_FALSE(state.scheduled());
}

TEST_F(AgentTest, a_queue_is_held_while_a_more_urgent_one_has_work) {
  Start();
  EXPECT_TRUE(state.scheduled());
  Launch(low_);
  Launch(high_);
  Attend();
  EXPECT_FALSE(MayRun(*low_queue_));
  EXPECT_TRUE(MayRun(*high_queue_));
  high_queue_->RetiredUpTo(1);
  Attend(milliseconds(5));
  EXPECT_TRUE(MayRun(*low_queue_));
}

TEST_F(AgentTest, another_scheduler_opens_every_gate_and_the_thread_ends) {
  Start();
  Launch(low_);
  Launch(high_);
  Attend();
  ASSERT_FALSE(MayRun(*low_queue_));
  EXPECT_EQ(agent_.SetScheduler(kSchedulerAppManaged, kPolicyHighestPriorityFirst), kXSchedSuccess);
  EXPECT_TRUE(MayRun(*low_queue_));
  EXPECT_FALSE(state.scheduled());
  Attend(milliseconds(5));
  EXPECT_EQ(thread_.work, nullptr) << "the thread has ended";
  EXPECT_EQ(agent_.SetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  EXPECT_EQ(thread_.started, 2);
}

TEST_F(AgentTest, a_policy_that_is_not_known_changes_nothing) {
  Start();
  EXPECT_EQ(agent_.SetScheduler(kSchedulerLocal, static_cast<XPolicyType>(77)), kXSchedErrorNotSupported);
  EXPECT_TRUE(state.scheduled());
}

TEST_F(AgentTest, without_a_thread_nothing_is_scheduled) {
  thread_.refuses = true;
  ASSERT_TRUE(agent_.Start({.scheduler = kSchedulerLocal}));
  EXPECT_FALSE(state.scheduled());
}

TEST_F(AgentTest, while_something_is_taken_and_for_a_second_after_the_thread_looks_at_it) {
  Start();
  Launch(low_);
  Launch(high_);
  EXPECT_LE(InMs(Attend()), 60);
  for (XQueue* queue : {low_queue_, high_queue_}) queue->RetiredUpTo(1);
  EXPECT_LE(InMs(Attend(milliseconds(900))), 60);
  EXPECT_EQ(Attend(milliseconds(200)), kNever);
}

TEST_F(AgentTest, what_the_driver_does_not_give_back_is_tried_again_until_it_is) {
  Start();
  XQueue& queue = *high_queue_;
  queue.Suspend(true);
  Attend();
  ASSERT_TRUE(high_.deactivated);
  high_.refuses_control = true;
  queue.Suspend(false);
  EXPECT_LT(Attend(), kNever);
  EXPECT_TRUE(high_.deactivated);
  high_.refuses_control = false;
  Attend(milliseconds(1500));
  EXPECT_FALSE(high_.deactivated);
}

TEST_F(AgentTest, descriptors_that_the_program_has_closed_end_scheduling_for_good) {
  Start();
  Launch(low_);
  Launch(high_);
  Attend();
  ASSERT_FALSE(MayRun(*low_queue_));
  const int bell = thread_.work->WhatToAwait().bell;
  ASSERT_GE(bell, 0);
  close(bell);
  Attend(milliseconds(60));
  EXPECT_TRUE(MayRun(*low_queue_));
  EXPECT_FALSE(state.scheduled());
  EXPECT_EQ(thread_.work, nullptr);
  EXPECT_EQ(agent_.SetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedErrorNotFound);
}

TEST_F(AgentTest, at_the_end_of_the_process_every_gate_is_open) {
  Start();
  Launch(low_);
  Launch(high_);
  Attend();
  ASSERT_FALSE(MayRun(*low_queue_));
  agent_.Shutdown();
  EXPECT_TRUE(MayRun(*low_queue_));
  EXPECT_FALSE(state.scheduled());
}

// A thread that opens a gate may not return from the driver, and the process must end.
TEST_F(AgentTest, at_the_end_of_the_process_the_thread_is_made_to_open_the_gates) {
  ASSERT_TRUE(agent_.Start({.scheduler = kSchedulerAppManaged}));
  XQueue& queue = Make(low_);
  queue.Suspend(true);
  Launch(low_);
  ASSERT_TRUE(queue.HasClosedGates());
  thread_.work = nullptr;
  agent_.Shutdown();
  EXPECT_TRUE(queue.HasClosedGates());
  ASSERT_NE(thread_.work, nullptr);
  Attend();
  EXPECT_FALSE(queue.HasClosedGates());
}

}  // namespace
}  // namespace xsched::preempt::testing
