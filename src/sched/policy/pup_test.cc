// Process utilization partition: shares of processes, whatever queues they have.
#include <gtest/gtest.h>

#include "sched/sim/simulator.h"
#include "sched/testing/timeline.h"

namespace xsched::sched::pup {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Policy& ByProcess() { return *FindPolicy(kPolicyProcessUtilizationPartition); }

SimulatedQueue Busy(int process, Utilization utilization) {
  SimulatedQueue queue;
  queue.hints.utilization = utilization;
  queue.command = microseconds(100);
  queue.process = process;
  queue.in_flight = 0;
  return queue;
}

TEST(ProcessUtilizationPartition, three_queues_of_a_process_get_its_share_together) {
  const SimulationResult result =
      Simulate(ByProcess(), {Busy(1, 75), Busy(2, 25), Busy(2, 25), Busy(2, 25)}, seconds(2));
  EXPECT_NEAR(std::chrono::duration<double>(result.queues[0].device_time) /
                  std::chrono::duration<double>(result.busy),
              0.75, 0.01);
  EXPECT_GE(result.busy, milliseconds(1940));
}

TEST(ProcessUtilizationPartition, what_a_process_does_not_use_the_others_get) {
  SimulatedQueue task = Busy(1, 90);
  task.period = milliseconds(100);
  const SimulationResult result = Simulate(ByProcess(), {task, Busy(2, 10)}, seconds(2));
  EXPECT_GE(result.queues[1].device_time, milliseconds(1900));
}

class Processes : public Timeline {
 protected:
  Processes() {
    scheduler_.SetPolicy(ByProcess());
    sliceable_ = false;
  }
};

TEST_F(Processes, queues_of_one_process_run_together_and_do_not_hold_each_other) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Busy(1);
  Busy(2);
  for (int i = 0; i < 10; ++i) {
    Pass(milliseconds(5));
    EXPECT_TRUE(Runs(1) && Runs(2));
    RetireOne(1);
    RetireOne(2);
  }
  EXPECT_FALSE(sink_.Of(QueueId{1}).gated) << "there is no other process";
}

TEST_F(Processes, a_process_is_held_and_runs_as_a_whole) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  int turns_of_first = 0;
  for (int i = 0; i < 200; ++i) {
    Pass(milliseconds(1));
    ASSERT_EQ(Runs(1), Runs(2));
    ASSERT_NE(Runs(1), Runs(3));
    turns_of_first += Runs(1);
    for (uint64_t id : {1, 2, 3}) {
      if (Runs(id)) RetireOne(id);
    }
  }
  EXPECT_NEAR(turns_of_first, 100, 6);
}

// Otherwise a program that makes and releases streams would begin anew with each of them.
TEST_F(Processes, a_process_keeps_its_account_when_a_queue_goes) {
  Add(1, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  uint64_t next = 100;
  Add(next, 0, kGpu, 10);
  for (uint64_t id : {uint64_t{1}, uint64_t{3}, next}) Busy(id);
  int turns_of_first = 0;
  for (int i = 0; i < 200; ++i) {
    Pass(milliseconds(1));
    turns_of_first += Runs(1);
    for (uint64_t id : {uint64_t{1}, uint64_t{3}, next}) {
      if (Runs(id)) RetireOne(id);
    }
    scheduler_.RemoveQueue(QueueId{next}, now_);
    Add(++next, 0, kGpu, 10);
    Busy(next);
  }
  EXPECT_NEAR(turns_of_first, 100, 10);
}

// Without a share it runs in the gaps of the others. Then one of its queues, which has no work, gets one.
TEST_F(Processes, a_share_that_comes_later_owes_nothing_for_the_time_without) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  for (uint64_t id : {1, 2}) scheduler_.SetHints(QueueId{id}, {.utilization = 0});
  scheduler_.SetHints(QueueId{3}, {.utilization = 50});
  Busy(1);
  for (int i = 0; i < 2000; ++i) {
    Pass(milliseconds(1));
    if (Runs(1)) RetireOne(1);
  }
  Busy(3);
  Pass(milliseconds(20));
  ASSERT_FALSE(Runs(1));
  scheduler_.SetHints(QueueId{2}, {.utilization = 50});
  Decide();
  int turns_of_first = 0;
  for (int i = 0; i < 200; ++i) {
    Pass(milliseconds(1));
    turns_of_first += Runs(1);
    for (uint64_t id : {1, 3}) {
      if (Runs(id)) RetireOne(id);
    }
  }
  EXPECT_NEAR(turns_of_first, 100, 10);
}

}  // namespace
}  // namespace xsched::sched::pup
