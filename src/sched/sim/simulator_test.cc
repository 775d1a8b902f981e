#include "sched/sim/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sched/sim/simulation.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

SimulatedQueue Continuous(Priority priority, Duration command, Utilization utilization = 100) {
  SimulatedQueue queue;
  queue.hints.priority = priority;
  queue.hints.utilization = utilization;
  queue.command = command;
  return queue;
}

SimulatedQueue Task(Priority priority, Duration command, int commands, Duration period) {
  SimulatedQueue queue = Continuous(priority, command);
  queue.commands = commands;
  queue.period = period;
  return queue;
}

TEST(HighestPriorityFirstSimulated, an_urgent_task_waits_for_what_is_in_flight_at_most) {
  auto result =
      Simulate(*FindPolicy(kPolicyHighestPriorityFirst),
               {Continuous(0, milliseconds(2)), Task(1, milliseconds(2), 5, milliseconds(50))}, seconds(5));
  const auto& latencies = result.queues[1].latencies;
  ASSERT_GE(latencies.size(), 90u);
  // The running command, and the one that has passed the gate behind it.
  EXPECT_LE(*std::max_element(latencies.begin(), latencies.end()),
            milliseconds(10 + 2 + 2) + microseconds(50));
  EXPECT_GE(result.busy, milliseconds(4850)) << "the device is kept busy";
}

TEST(HighestPriorityFirstSimulated, the_other_keeps_what_the_urgent_one_leaves) {
  auto result = Simulate(*FindPolicy(kPolicyHighestPriorityFirst),
                         {Continuous(0, microseconds(100)), Task(1, microseconds(200), 5, milliseconds(20))},
                         seconds(2));
  EXPECT_GE(result.queues[0].device_time, milliseconds(2000 * 95 / 100 * 97 / 100));
}

TEST(UtilizationPartitionSimulated, shares_are_kept_within_two_points_and_the_device_busy) {
  auto result =
      Simulate(*FindPolicy(kPolicyUtilizationPartition),
               {Continuous(0, microseconds(500), 75), Continuous(0, microseconds(500), 25)}, seconds(5));
  double first = std::chrono::duration<double>(result.queues[0].device_time) /
                 std::chrono::duration<double>(result.busy);
  EXPECT_NEAR(first, 0.75, 0.02);
  EXPECT_GE(result.busy, milliseconds(4850));
}

TEST(UtilizationPartitionSimulated, what_one_does_not_use_the_others_get) {
  auto result = Simulate(*FindPolicy(kPolicyUtilizationPartition),
                         {Task(0, milliseconds(1), 1, milliseconds(100)), Continuous(0, milliseconds(1), 10)},
                         seconds(2));
  EXPECT_GE(result.queues[1].device_time, milliseconds(1850));
}

TEST(StuckQueueSimulated, it_holds_others_up_for_100_ms_at_a_time_and_in_the_end_no_more) {
  auto worked_in = [](Duration time) {
    SimulatedQueue stuck = Task(9, milliseconds(1), 1, seconds(100));
    stuck.stuck = true;
    return Simulate(*FindPolicy(kPolicyHighestPriorityFirst), {Continuous(0, milliseconds(1)), stuck}, time)
        .queues[0]
        .device_time;
  };
  for (milliseconds time(0); time < seconds(2); time += milliseconds(100)) {
    EXPECT_GT(worked_in(time + milliseconds(100)), worked_in(time));
  }
  EXPECT_GE(worked_in(seconds(4)) - worked_in(seconds(2)), milliseconds(1990));
}

TEST(Simulator, the_same_input_gives_the_same_result) {
  auto run = [] {
    return Simulate(*FindPolicy(kPolicyUtilizationPartition),
                    {Continuous(0, microseconds(700), 60), Task(0, microseconds(300), 3, milliseconds(7))},
                    seconds(1));
  };
  auto one = run();
  auto two = run();
  EXPECT_EQ(one.busy, two.busy);
  EXPECT_EQ(one.queues[1].latencies, two.queues[1].latencies);
}

// Each change of a hint cost a queue its place in its level, or its credit.
TEST(Simulator, a_hint_that_the_policy_does_not_read_changes_nothing) {
  for (const char* policy : {"UP", "UP:process", "CFS", "MLFQ", "EEVDF", "RESERVE"}) {
    sim::Load load;
    load.devices = {{}};
    load.length = seconds(12);
    for (int i = 0; i < 3; ++i) {
      sim::QueueLoad queue;
      queue.process = i;
      queue.tasks = {{.commands = sim::kWithoutEnd, .command = microseconds(250), .until = load.length}};
      load.processes.push_back({});
      load.queues.push_back(queue);
    }
    Hints hints;
    for (Duration at = milliseconds(5); at < load.length; at += milliseconds(5)) {
      hints.deadline_us = hints.deadline_us == 1000 ? 2000 : 1000;
      load.queues[1].changes.push_back({at, hints});
    }
    const sim::Result result = sim::Simulate(load, {.policy = *ParsePolicySetting(policy)});
    for (const sim::QueueResult& queue : result.queues) {
      EXPECT_NEAR(std::chrono::duration<double>(queue.device_time) / load.length, 1.0 / 3, 0.01) << policy;
    }
  }
}

}  // namespace
}  // namespace xsched::sched
