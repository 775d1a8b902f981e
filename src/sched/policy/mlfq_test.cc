// Multi-level feedback queue: which queue of a device runs, and what brings it down and up.
#include <gtest/gtest.h>

#include <algorithm>

#include "sched/sim/simulation.h"
#include "sched/sim/simulator.h"
#include "sched/testing/policy_device.h"

namespace xsched::sched::mlfq {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Policy& Feedback() { return *FindPolicy(kPolicyMultiLevelFeedbackQueue); }

SimulatedQueue Busy() {
  SimulatedQueue queue;
  queue.command = microseconds(500);
  return queue;
}

SimulatedQueue Task(int commands, Duration period) {
  SimulatedQueue queue = Busy();
  queue.commands = commands;
  queue.period = period;
  return queue;
}

// Lets the device run until `end`, and adds up what each queue gets.
class Virtual {
 public:
  explicit Virtual(PolicyDevice& ready) : ready_(ready) {
    for (QueueView& queue : ready_.ready()) queue.newly_ready = true;
  }
  void Until(TimePoint end) {
    while (now_ < end) {
      const TimePoint next = std::min(ready_.Decide(Feedback(), now_), end);
      ASSERT_GT(next, now_);
      EXPECT_EQ(std::ranges::count_if(ready_.ready(), &QueueView::run), 1) << "one runs at a time";
      for (QueueView& queue : ready_.ready()) {
        if (queue.run && !queue.running) queue.running_since = now_;
        queue.running = queue.run;
        queue.newly_ready = false;
        if (queue.run) queue.service += next - now_;
      }
      now_ = next;
    }
  }
  TimePoint now() const { return now_; }

 private:
  PolicyDevice& ready_;
  TimePoint now_ = PolicyDevice::kNow;
};

TEST(MultiLevelFeedback, quanta_double_from_level_to_level) {
  PolicyDevice ready = {View(1, {}), View(2, {})};
  Virtual run(ready);
  const TimePoint begin = run.now();
  run.Until(begin + milliseconds(10));
  EXPECT_EQ(ready[0].service, milliseconds(10));
  run.Until(begin + milliseconds(20));
  EXPECT_EQ(ready[1].service, milliseconds(10));
  run.Until(begin + milliseconds(40));
  EXPECT_EQ(ready[0].service, milliseconds(30));
  run.Until(begin + milliseconds(60));
  EXPECT_EQ(ready[1].service, milliseconds(30));
}

TEST(MultiLevelFeedback, busy_queues_share_equally_in_the_long_run) {
  const SimulationResult result = Simulate(Feedback(), {Busy(), Busy(), Busy()}, seconds(6));
  for (const SimulatedQueue& queue : result.queues) {
    EXPECT_NEAR(InSeconds(queue.device_time), 2, 0.1);
  }
  EXPECT_GE(result.busy, milliseconds(5900));
}

TEST(MultiLevelFeedback, short_tasks_do_not_wait_for_long_ones) {
  const SimulationResult result =
      Simulate(Feedback(), {Busy(), Busy(), Task(4, milliseconds(50))}, seconds(4));
  const std::vector<Duration>& latencies = result.queues[2].latencies;
  ASSERT_GE(latencies.size(), 75u);
  // Tasks of 2 ms bring their queue down every five of them. It comes up again within 100 ms.
  const auto late =
      std::ranges::count_if(latencies, [](Duration latency) { return latency > milliseconds(5); });
  EXPECT_LE(late, std::ssize(latencies) / 4);
}

TEST(MultiLevelFeedback, none_waits_for_ever_beside_short_tasks_that_fill_the_device) {
  std::vector<SimulatedQueue> queues = {Busy()};
  for (int i = 0; i < 6; ++i)
    queues.push_back(Task(6, milliseconds(18)));  // together as long as there is time
  const SimulationResult result = Simulate(Feedback(), queues, seconds(4));
  EXPECT_GT(result.queues[0].device_time, milliseconds(200));
}

TEST(MultiLevelFeedback, a_pause_does_not_renew_a_quantum) {
  PolicyDevice ready = {View(1, {}), View(2, {})};
  Virtual run(ready);
  run.Until(run.now() + milliseconds(9));
  ready[0].running = false;
  ready[0].newly_ready = true;
  run.Until(run.now() + milliseconds(10));  // the other one's quantum
  run.Until(run.now() + milliseconds(1));
  EXPECT_EQ(ready[0].service, milliseconds(10));
  run.Until(run.now() + milliseconds(1));
  EXPECT_FALSE(ready[0].run && ready[0].service > milliseconds(11)) << "it is at the second level now";
}

// The programs for which XSched 1.2 has test scripts: they compute, sleep, and compute again.
struct Round {
  int commands;
  Duration sleep;  // before it
};

sim::QueueLoad Program(const std::vector<Round>& rounds, int process) {
  sim::QueueLoad queue;
  queue.process = process;
  queue.level = 2;
  for (const Round& round : rounds) {
    sim::Task task;
    task.at = round.sleep;
    task.follows = !queue.tasks.empty();
    task.commands = static_cast<uint64_t>(round.commands);
    task.command = milliseconds(3);
    queue.tasks.push_back(task);
  }
  return queue;
}

sim::Result Simulated(std::vector<sim::QueueLoad> queues, Duration length) {
  sim::Load load;
  load.devices.emplace_back();
  load.processes.resize(queues.size());
  load.queues = std::move(queues);
  load.length = length;
  sim::Conditions conditions;
  conditions.policy = Feedback();
  return sim::Simulate(load, conditions);
}

TEST(MultiLevelFeedback, a_task_that_sleeps_for_long_is_fast_every_time) {
  const std::vector<Round> interactive(25, {10, milliseconds(300)});
  const std::vector<Round> background(40, {200, milliseconds(5)});
  const sim::Result result = Simulated({Program(interactive, 0), Program(background, 1)}, seconds(8));
  const std::vector<Duration>& latencies = result.queues[0].latencies;
  ASSERT_GE(latencies.size(), 20u);
  // 30 ms, and the command that it meets.
  for (Duration latency : latencies) EXPECT_LE(latency, milliseconds(34));
}

TEST(MultiLevelFeedback, a_short_sleep_does_not_bring_a_batch_job_up) {
  // One that sleeps 5 ms after each 600 ms, and one that never sleeps: they are at the same level.
  const std::vector<Round> sleeper(40, {200, milliseconds(5)});
  const std::vector<Round> busy(1, {100'000, milliseconds(0)});
  const sim::Result result = Simulated({Program(sleeper, 0), Program(busy, 1)}, seconds(10));
  const double part = result.queues[0].device_time / std::chrono::duration<double>(result.length);
  EXPECT_NEAR(part, 0.5, 0.04);
}

TEST(MultiLevelFeedback, a_program_is_fast_again_when_it_changes_from_batches_to_short_tasks) {
  std::vector<Round> mixed(5, {100, milliseconds(10)});
  mixed.insert(mixed.end(), 5, {20, milliseconds(500)});
  const std::vector<Round> background(100, {200, milliseconds(5)});
  const sim::Result result = Simulated({Program(mixed, 0), Program(background, 1)}, seconds(15));
  const std::vector<Duration>& latencies = result.queues[0].latencies;
  ASSERT_EQ(latencies.size(), 10u);
  for (size_t i = 0; i < 5; ++i) EXPECT_GE(latencies[i], milliseconds(450)) << "it shares the device";
  for (size_t i = 5; i < 10; ++i) EXPECT_LE(latencies[i], milliseconds(64)) << "60 ms, and a command";
}

}  // namespace
}  // namespace xsched::sched::mlfq
