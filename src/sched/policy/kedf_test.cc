// K earliest deadlines first: which queues of a device run.
#include <gtest/gtest.h>

#include <algorithm>

#include "sched/sim/simulator.h"
#include "sched/testing/policy_device.h"

namespace xsched::sched::kedf {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNow = PolicyDevice::kNow;

const Policy& Earliest() { return *FindPolicy(kPolicyKEarliestDeadlineFirst); }

QueueView Due(uint64_t id, milliseconds after) {
  QueueView view = View(id, {.deadline_us = microseconds(after).count()});
  view.ready_since = kNow;
  return view;
}

SimulatedQueue Task(milliseconds length, milliseconds period, milliseconds deadline) {
  SimulatedQueue queue;
  queue.hints.deadline_us = microseconds(deadline).count();
  queue.command = microseconds(250);
  queue.commands = static_cast<int>(length / microseconds(250));
  queue.period = period;
  return queue;
}

TEST(KEarliestDeadlines, the_earliest_runs_and_the_others_wait) {
  PolicyDevice ready = {Due(1, milliseconds(30)), Due(2, milliseconds(10)), Due(3, milliseconds(20))};
  ready.Decide(Earliest(), kNow);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  EXPECT_FALSE(ready[2].run);
}

TEST(KEarliestDeadlines, k_of_them_run) {
  PolicyDevice ready = {Due(1, milliseconds(30)), Due(2, milliseconds(10)), Due(3, milliseconds(20)),
                        View(4, {})};
  ready.at_a_time = 2;
  ready.Decide(Earliest(), kNow);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run && ready[2].run);
  EXPECT_FALSE(ready[3].run);
  ready.at_a_time = 4;
  EXPECT_EQ(ready.Decide(Earliest(), kNow), kNever);
  EXPECT_TRUE(ready[0].run && ready[3].run);
}

TEST(KEarliestDeadlines, all_deadlines_are_met_where_that_is_possible) {
  // 92 % of the time.
  const std::vector<SimulatedQueue> queues = {Task(milliseconds(4), milliseconds(10), milliseconds(10)),
                                              Task(milliseconds(5), milliseconds(20), milliseconds(20)),
                                              Task(milliseconds(27), milliseconds(100), milliseconds(100))};
  const SimulationResult result = Simulate(Earliest(), queues, seconds(4));
  for (const SimulatedQueue& queue : result.queues) {
    ASSERT_FALSE(queue.latencies.empty());
    // A command of a later one may be in flight.
    EXPECT_LE(*std::ranges::max_element(queue.latencies),
              microseconds(queue.hints.deadline_us) + microseconds(600));
  }
}

TEST(KEarliestDeadlines, without_a_deadline_a_queue_gets_what_the_others_leave) {
  SimulatedQueue busy;
  busy.command = microseconds(250);
  const SimulationResult result =
      Simulate(Earliest(), {busy, Task(milliseconds(4), milliseconds(10), milliseconds(10))}, seconds(2));
  EXPECT_GE(result.queues[0].device_time, milliseconds(1150));
  EXPECT_LE(*std::ranges::max_element(result.queues[1].latencies), milliseconds(10));
}

// In XSched 1.2 it starved.
TEST(KEarliestDeadlines, without_a_deadline_a_queue_gets_on_where_the_others_leave_nothing) {
  SimulatedQueue busy;
  busy.command = microseconds(250);
  const SimulationResult result = Simulate(Earliest(),
                                           {busy, Task(milliseconds(5), milliseconds(10), milliseconds(10)),
                                            Task(milliseconds(5), milliseconds(10), milliseconds(10))},
                                           seconds(4));
  EXPECT_GE(result.queues[0].device_time, milliseconds(10));
}

TEST(KEarliestDeadlines, two_without_a_deadline_take_turns) {
  SimulatedQueue busy;
  busy.command = microseconds(250);
  const SimulationResult result = Simulate(Earliest(), {busy, busy}, seconds(2));
  for (const SimulatedQueue& queue : result.queues) {
    EXPECT_NEAR(std::chrono::duration<double>(queue.device_time).count(), 1, 0.05);
  }
}

TEST(KEarliestDeadlines, work_that_is_very_late_does_not_make_the_others_late) {
  PolicyDevice ready = {Due(1, milliseconds(10)), Due(2, milliseconds(40))};
  EXPECT_EQ(ready.Decide(Earliest(), kNow), kNow + milliseconds(20)) << "late by more than its deadline";
  EXPECT_TRUE(ready[0].run);
  ready.Decide(Earliest(), kNow + milliseconds(20));
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
}

}  // namespace
}  // namespace xsched::sched::kedf
