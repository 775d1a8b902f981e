// K earliest deadlines first: which queues of a device run.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sched/sim/simulation.h"
#include "sched/sim/simulator.h"
#include "sched/testing/policy_device.h"
#include "sched/testing/recorder.h"

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
    EXPECT_NEAR(InSeconds(queue.device_time), 1, 0.05);
  }
}

// An engine's requests, and tasks of another of its queues that follow one another; beside them, a busy
// program.
class OneDeadlineOfTwoQueues : public testing::TestWithParam<const char*> {
 protected:
  static sim::QueueLoad Queue(int process, const Hints& hints, const sim::Task& task) {
    sim::QueueLoad queue;
    queue.process = process;
    queue.hints = hints;
    queue.tasks = {task};
    return queue;
  }
};

TEST_P(OneDeadlineOfTwoQueues, is_not_counted_from_the_work_of_the_other) {
  sim::Load load;
  load.devices = {{}};
  load.processes = {{.name = "engine", .tenant = 1}, {.name = "other", .tenant = 2}};
  load.length = seconds(10);
  const sim::Task request = {
      .commands = 8, .command = microseconds(250), .repeat = milliseconds(40), .until = load.length};
  const sim::Task side = {
      .commands = 800, .command = microseconds(250), .repeat = Duration::zero(), .until = load.length};
  const sim::Task busy = {.commands = sim::kWithoutEnd, .command = microseconds(250), .until = load.length};
  load.queues = {Queue(0, {.deadline_us = 20'000}, request), Queue(0, {}, side), Queue(1, {}, busy)};
  const sim::Result result = sim::Simulate(load, {.policy = *ParsePolicySetting(GetParam())});
  EXPECT_GE(result.queues[0].latencies.size(), 200u);
  EXPECT_EQ(result.queues[0].missed, 0u);
  EXPECT_LE(result.queues[1].device_time, load.length / 2);
  EXPECT_GE(result.queues[1].device_time, load.length / 4);
}

INSTANTIATE_TEST_SUITE_P(Groups, OneDeadlineOfTwoQueues, testing::Values("KEDF:process", "KEDF:tenant"),
                         [](const auto& tested) { return std::string(tested.param).substr(5); });

TEST(KEarliestDeadlines, many_without_a_deadline_do_not_make_one_late_that_can_be_met) {
  SimulatedQueue busy;
  busy.command = microseconds(50);  // the first ones of all run before the first decision
  std::vector<SimulatedQueue> queues(250, busy);
  queues.push_back(Task(milliseconds(4), milliseconds(20), milliseconds(20)));
  const SimulationResult result = Simulate(Earliest(), queues, seconds(10));
  ASSERT_GE(result.queues.back().latencies.size(), 499u);
  EXPECT_LE(*std::ranges::max_element(result.queues.back().latencies), milliseconds(20));
  for (size_t i = 0; i < 250; ++i) EXPECT_GE(result.queues[i].device_time, milliseconds(25)) << i;
}

// A time slice had passed before the other's command ended.
TEST(KEarliestDeadlines, without_a_deadline_a_queue_gets_on_beside_commands_longer_than_a_time_slice) {
  SimulatedQueue busy;
  busy.command = milliseconds(1);
  SimulatedQueue due = Task(milliseconds(30), milliseconds(30), seconds(1));
  due.command = milliseconds(30);
  due.commands = 1;
  const SimulationResult result = Simulate(Earliest(), {due, busy}, seconds(20));
  EXPECT_GE(result.queues[1].device_time, milliseconds(90)) << "a time slice each second";
}

// All of them were due at the same time, one second after they came.
TEST(KEarliestDeadlines, many_without_a_deadline_do_not_go_ahead_all_at_once) {
  SimulatedQueue busy;
  busy.command = microseconds(250);
  std::vector<SimulatedQueue> queues(100, busy);
  queues.push_back(Task(milliseconds(170), milliseconds(200), milliseconds(200)));
  const SimulationResult result = Simulate(Earliest(), queues, seconds(20));
  ASSERT_GE(result.queues.back().latencies.size(), 99u);
  EXPECT_LE(*std::ranges::max_element(result.queues.back().latencies), milliseconds(200));
  for (size_t i = 0; i < 100; ++i) EXPECT_GE(result.queues[i].device_time, milliseconds(15)) << i;
}

TEST(KEarliestDeadlines, work_that_is_very_late_does_not_make_the_others_late) {
  PolicyDevice ready = {Due(1, milliseconds(10)), Due(2, milliseconds(40))};
  EXPECT_EQ(ready.Decide(Earliest(), kNow), kNow + milliseconds(20)) << "late by more than its deadline";
  EXPECT_TRUE(ready[0].run);
  ready.Decide(Earliest(), kNow + milliseconds(20));
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
}

// Its first request's deadline was that of all work that followed, as long as it never was idle.
TEST(KEarliestDeadlines, a_queue_that_always_has_work_has_a_deadline_for_each_request) {
  Scheduler scheduler{SchedulerConfig{}};
  Recorder recorder;
  scheduler.SetPolicy(Earliest());
  const auto add = [&](QueueId id, milliseconds deadline) {
    const Hints hints = {.deadline_us = microseconds(deadline).count()};
    scheduler.AddQueue(id, ProcessId{static_cast<uint64_t>(id)}, DeviceId{1}, hints, kNow);
  };
  constexpr QueueId kStream{1};
  constexpr QueueId kOther{2};
  add(kStream, milliseconds(10));
  add(kOther, milliseconds(12));
  scheduler.Progress(kStream, 10, 0, kNow);
  scheduler.Progress(kOther, 10, 0, kNow + milliseconds(1));
  scheduler.Decide(kNow + milliseconds(1), recorder);
  EXPECT_TRUE(recorder.Of(kStream).run);
  EXPECT_FALSE(recorder.Of(kOther).run);
  scheduler.Progress(kStream, 20, 4, kNow + milliseconds(5));
  scheduler.Decide(kNow + milliseconds(5), recorder);
  EXPECT_TRUE(recorder.Of(kStream).run) << "its first request is not done";
  scheduler.Progress(kStream, 20, 10, kNow + milliseconds(9));
  scheduler.Decide(kNow + milliseconds(9), recorder);
  EXPECT_FALSE(recorder.Of(kStream).run) << "its second request is due at 15 ms";
  EXPECT_TRUE(recorder.Of(kOther).run) << "it is due at 13 ms";
}

}  // namespace
}  // namespace xsched::sched::kedf
