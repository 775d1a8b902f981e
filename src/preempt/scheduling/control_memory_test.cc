#include "preempt/scheduling/control_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ipc/control_access.h"
#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

class ControlMemoryTest : public FakeProcess {
 protected:
  void SetUp() override { ASSERT_TRUE(memory_.Create()); }
  ipc::ControlBlock* ResetBlock(uint32_t index) override { return memory_.ResetBlock(index); }
  XQueue& NewQueue() { return Make(*drivers_.emplace_back(new FakeDriver(kGatingHostGates))); }
  static bool HasRung(int bell) {
    pollfd poll_bell{bell, POLLIN, 0};
    return poll(&poll_bell, 1, 0) == 1;
  }
  // How many waits of the queue the scheduler reads.
  int WaitsOf(const XQueue& queue) const {
    int count = 0;
    ipc::ForEachWait(memory_.segment(), queue.index(), [&](const ipc::Wait&) { ++count; });
    return count;
  }
  static uint64_t RetireAfter(XQueue& queue) {
    queue.block().submitted.store(10);
    return 10;
  }

  std::vector<std::unique_ptr<FakeDriver>> drivers_;
  ControlMemory memory_{table, state};
};

TEST_F(ControlMemoryTest, before_it_is_created_bells_and_waits_do_nothing) {
  ControlMemory memory(table, state);
  XQueue& queue = NewQueue();
  memory.RingScheduler(0);
  memory.RingAgent();
  EXPECT_FALSE(memory.AddWait(queue, queue, 1));
  EXPECT_FALSE(memory.created());
  EXPECT_FALSE(memory.lost());
}

TEST_F(ControlMemoryTest, the_schedulers_bell_marks_the_queue_and_wakes_the_thread_that_schedules) {
  memory_.UseBellOf(ControlMemory::Scheduler::kServers);
  memory_.RingScheduler(70);
  EXPECT_TRUE(HasRung(memory_.scheduler_bell()));
  EXPECT_FALSE(HasRung(memory_.agent_bell()));
  uint32_t marked = 0;
  ipc::ForEachDirty(memory_.segment(), [&](uint32_t index) { marked = index; });
  EXPECT_EQ(marked, 70u);
  memory_.UseBellOf(ControlMemory::Scheduler::kAgents);
  memory_.RingScheduler(3);
  EXPECT_TRUE(HasRung(memory_.agent_bell()));
  memory_.SilenceAgent();
  EXPECT_FALSE(HasRung(memory_.agent_bell()));
}

TEST_F(ControlMemoryTest, a_file_in_the_place_of_a_bell_is_not_written_and_every_gate_opens) {
  XQueue& queue = NewQueue();
  Hold(queue);
  memory_.UseBellOf(ControlMemory::Scheduler::kServers);
  char name[] = "/tmp/xsched-control-memory-XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  ASSERT_GE(dup2(file, memory_.scheduler_bell()), 0);
  memory_.RingScheduler(queue.index());
  EXPECT_EQ(lseek(file, 0, SEEK_END), 0) << "nothing was written into the program's file";
  EXPECT_TRUE(memory_.lost());
  EXPECT_FALSE(memory_.Intact());
  EXPECT_EQ(queue.block().open, 1u);
  EXPECT_FALSE(state.scheduled());
  close(memory_.scheduler_bell());
  close(file);
}

TEST_F(ControlMemoryTest, what_a_former_scheduler_wrote_is_opened) {
  XQueue& queue = NewQueue();
  Hold(queue);
  queue.block().submitted = 1;
  EXPECT_TRUE(memory_.AnythingTaken());
  memory_.OpenControls();
  EXPECT_EQ(queue.block().gate, ipc::kGateRun);
  EXPECT_EQ(queue.block().flags, 0u);
  EXPECT_FALSE(memory_.AnythingTaken());
}

TEST_F(ControlMemoryTest, nothing_is_taken_from_a_queue_without_work) {
  XQueue& queue = NewQueue();
  Hold(queue);
  EXPECT_FALSE(memory_.AnythingTaken());
}

TEST_F(ControlMemoryTest, four_waits_are_kept_and_a_later_one_for_the_same_queue_replaces_the_former) {
  XQueue& waiter = NewQueue();
  for (int i = 0; i < 4; ++i) {
    XQueue& owner = NewQueue();
    EXPECT_TRUE(memory_.AddWait(waiter, owner, RetireAfter(owner)));
    EXPECT_TRUE(memory_.AddWait(waiter, owner, 11));
    EXPECT_EQ(WaitsOf(waiter), i + 1);
  }
  XQueue& fifth = NewQueue();
  EXPECT_FALSE(memory_.AddWait(waiter, fifth, RetireAfter(fifth))) << "there is no room";
}

TEST_F(ControlMemoryTest, a_wait_for_an_earlier_command_leaves_the_wait_for_a_later_one) {
  XQueue& waiter = NewQueue();
  XQueue& owner = NewQueue();
  EXPECT_TRUE(memory_.AddWait(waiter, owner, RetireAfter(owner)));
  EXPECT_FALSE(memory_.AddWait(waiter, owner, 5)) << "nothing new is known";
  EXPECT_FALSE(memory_.AddWait(waiter, owner, 10)) << "nothing new is known";
  EXPECT_EQ(WaitsOf(waiter), 1);
  ipc::ForEachWait(memory_.segment(), waiter.index(),
                   [](const ipc::Wait& wait) { EXPECT_EQ(wait.until, 10u); });
}

TEST_F(ControlMemoryTest, a_wait_that_has_passed_or_whose_queue_has_gone_makes_room) {
  XQueue& waiter = NewQueue();
  std::vector<XQueue*> owners;
  for (int i = 0; i < 4; ++i) {
    owners.push_back(&NewQueue());
    ASSERT_TRUE(memory_.AddWait(waiter, *owners.back(), RetireAfter(*owners.back())));
  }
  owners[0]->block().retired = 10;
  XQueue& next = NewQueue();
  EXPECT_TRUE(memory_.AddWait(waiter, next, RetireAfter(next)));
  table.Destroy(owners[1]->handle());
  XQueue& last = NewQueue();
  EXPECT_TRUE(memory_.AddWait(waiter, last, RetireAfter(last)));
}

// The server can write into the segment as well.
TEST_F(ControlMemoryTest, a_wait_for_a_queue_that_cannot_be_is_not_looked_up_and_makes_room) {
  XQueue& waiter = NewQueue();
  const uint32_t wrong[] = {ipc::kMaxQueues, ipc::kMaxQueues + 1, 1u << 30, UINT32_MAX};
  for (int i = 0; i < 4; ++i)
    ipc::WriteWait(memory_.segment().depends[waiter.index()][i], {wrong[i], 1, UINT64_MAX});
  EXPECT_EQ(WaitsOf(waiter), 0);
  for (int i = 0; i < 4; ++i) {
    XQueue& owner = NewQueue();
    EXPECT_TRUE(memory_.AddWait(waiter, owner, RetireAfter(owner)));
  }
  EXPECT_EQ(WaitsOf(waiter), 4);
}

TEST_F(ControlMemoryTest, a_wait_for_what_has_retired_is_none) {
  XQueue& waiter = NewQueue();
  XQueue& owner = NewQueue();
  EXPECT_FALSE(memory_.AddWait(waiter, owner, 0));
  EXPECT_EQ(WaitsOf(waiter), 0);
}

TEST_F(ControlMemoryTest, a_forked_child_has_none_and_leaves_the_parents_alone) {
  memory_.UseBellOf(ControlMemory::Scheduler::kServers);
  const int bell = dup(memory_.scheduler_bell());
  XQueue& queue = NewQueue();
  const pid_t child = fork();
  if (child == 0) {
    memory_.ForgetAfterFork();
    queue.block().submitted = 7;  // private memory from now on
    memory_.RingScheduler(queue.index());
    _exit(memory_.created() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(queue.block().submitted, 0u);
  EXPECT_FALSE(HasRung(bell));
  EXPECT_TRUE(memory_.Intact());
  close(bell);
}

}  // namespace
}  // namespace xsched::preempt::testing
