#include "preempt/scheduling/local_client.h"

#include <gtest/gtest.h>

#include "ipc/control_access.h"
#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;

class LocalClientTest : public FakeProcess {
 protected:
  void SetUp() override {
    low_queue_ = &Make(low_);
    high_queue_ = &Make(high_);
    sched::Hints hints = high_queue_->hints();
    hints.priority = 5;
    high_queue_->SetHints(hints);
  }
  void TearDown() override {
    client_.Stop();
    FakeProcess::TearDown();
  }
  void Start(bool shared = false) {
    ASSERT_TRUE(client_.Start(*segment_, *sched::FindPolicy(kPolicyHighestPriorityFirst), shared));
    state.SetScheduled(true);
    client_.QueueCreated(*low_queue_);
    client_.QueueCreated(*high_queue_);
    EXPECT_TRUE(client_.Commit(fake_now));
  }
  // Does the work of the agent's thread for `time`.
  void Serve(Duration time) {
    for (const TimePoint until = fake_now + time; fake_now < until; fake_now += milliseconds(1))
      client_.Serve(fake_now);
  }
  static bool MayRun(const XQueue& queue) { return queue.block().gate == ipc::kGateRun; }
  bool HasRung(const XQueue& queue) const {
    return (segment_->header.dirty[queue.index() / 64] >> queue.index() % 64 & 1) != 0;
  }

  ipc::ControlBlock* ResetBlock(uint32_t index) override {
    ipc::ResetBlock(*segment_, index);
    return &segment_->blocks[index];
  }
  void RingScheduler(uint32_t index) override {
    segment_->header.dirty[index / 64].fetch_or(uint64_t{1} << index % 64);
  }

  std::unique_ptr<ipc::Segment> segment_ = std::make_unique<ipc::Segment>();
  FakeDriver low_{kGatingHostGates};
  FakeDriver high_{kGatingHostGates};
  XQueue* low_queue_ = nullptr;
  XQueue* high_queue_ = nullptr;
  LocalClient client_{table};
};

TEST_F(LocalClientTest, a_queue_is_held_while_a_more_urgent_one_has_work) {
  Start();
  EXPECT_TRUE(MayRun(*low_queue_));
  Launch(low_);
  Launch(high_);
  Serve(milliseconds(1));
  EXPECT_TRUE(MayRun(*high_queue_));
  EXPECT_FALSE(MayRun(*low_queue_));
  high_queue_->RetiredUpTo(1);
  Serve(milliseconds(5));
  EXPECT_TRUE(MayRun(*low_queue_));
}

// While only one queue is known, its launches notify nobody.
TEST_F(LocalClientTest, a_queue_that_was_busy_before_it_had_a_competitor_is_held_for_a_more_urgent_one) {
  ASSERT_TRUE(client_.Start(*segment_, *sched::FindPolicy(kPolicyHighestPriorityFirst), false));
  state.SetScheduled(true);
  client_.QueueCreated(*low_queue_);
  client_.Commit(fake_now);
  Launch(low_, 3);
  ASSERT_FALSE(HasRung(*low_queue_));
  client_.QueueCreated(*high_queue_);
  client_.Commit(fake_now);
  Launch(low_);
  ASSERT_FALSE(HasRung(*low_queue_)) << "it was at work already";
  Launch(high_);
  Serve(milliseconds(1));
  EXPECT_TRUE(MayRun(*high_queue_));
  EXPECT_FALSE(MayRun(*low_queue_));
}

TEST_F(LocalClientTest, a_queue_that_the_program_has_suspended_holds_nobody) {
  Start();
  Launch(low_);
  Launch(high_);
  high_queue_->Suspend(true);
  client_.Absent(*high_queue_);
  client_.Commit(fake_now);
  EXPECT_TRUE(MayRun(*low_queue_));
  high_queue_->Suspend(false);
  client_.Absent(*high_queue_);
  client_.Commit(fake_now);
  EXPECT_FALSE(MayRun(*low_queue_));
}

TEST_F(LocalClientTest, hints_and_the_end_of_a_queue_count_at_once) {
  Start();
  Launch(low_);
  Launch(high_);
  Serve(milliseconds(1));
  sched::Hints hints = low_queue_->hints();
  hints.priority = 7;
  low_queue_->SetHints(hints);
  client_.Hints(*low_queue_);
  client_.Commit(fake_now);
  EXPECT_TRUE(MayRun(*low_queue_));
  EXPECT_FALSE(MayRun(*high_queue_));
  client_.QueueDestroyed(*low_queue_);
  client_.Commit(fake_now);
  EXPECT_TRUE(MayRun(*high_queue_));
}

TEST_F(LocalClientTest, k_says_how_many_queues_run_at_a_time) {
  ASSERT_TRUE(client_.Start(*segment_, *sched::FindPolicy(kPolicyKEarliestDeadlineFirst), false));
  state.SetScheduled(true);
  client_.QueueCreated(*low_queue_);
  client_.QueueCreated(*high_queue_);
  client_.Commit(fake_now);
  Launch(low_);
  Launch(high_);
  Serve(milliseconds(1));
  EXPECT_NE(MayRun(*low_queue_), MayRun(*high_queue_));
  EXPECT_TRUE(client_.AtATime(2));
  client_.Commit(fake_now);
  EXPECT_TRUE(MayRun(*low_queue_) && MayRun(*high_queue_));
}

TEST_F(LocalClientTest, what_a_left_server_writes_is_put_right_within_60_ms) {
  Start(true);
  Launch(low_);
  Launch(high_);
  Serve(milliseconds(1));
  ASSERT_FALSE(MayRun(*low_queue_));
  ipc::WriteWords(low_queue_->block(), ipc::kOpenWords);
  EXPECT_LE(client_.wake_at(), fake_now + milliseconds(60));
  fake_now = client_.wake_at();
  client_.Serve(fake_now);
  EXPECT_FALSE(MayRun(*low_queue_));
}

}  // namespace
}  // namespace xsched::preempt::testing
