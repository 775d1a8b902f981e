// Service level objectives: targets are met, the others get the rest, and never less than their floor.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/testing/tries.h"
#include "sched/sim/simulation.h"
#include "sched/testing/busy_device.h"

namespace xsched::sched::slo {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNow = PolicyDevice::kNow;
// A queue is known well after so many requests.
constexpr int kMany = 400;
// Of a target of 10 ms.
constexpr Duration kReserve = microseconds(500);

const Policy& Slo() { return *FindPolicy(kPolicyServiceLevelObjective); }

Hints WithTarget(Duration target) { return {.latency_target_us = target / microseconds(1)}; }

QueueView Request(uint64_t id, Duration target, TimePoint since = kNow) {
  QueueView view = View(id, WithTarget(target));
  view.ready_since = since;
  return view;
}

// One queue with requests, beside one that always has work.
class Served {
 public:
  explicit Served(Duration target) : device_({View(1, {}), Request(2, target)}), target_(target) {
    idle_ = device_.Leave(1);
  }

  // Serves a request that takes the device for so long. Returns its latency.
  Duration Serve(Duration needed) {
    Begin();
    while (needed > Duration::zero()) {
      const TimePoint next = std::min(device_.Decide(Slo(), now_), now_ + milliseconds(1));
      const Duration passed = device_[1].run ? std::min(next - now_, needed) : next - now_;
      if (device_[1].run) needed -= passed;
      Pass(passed);
    }
    device_[1].finished_at = now_;
    idle_ = device_.Leave(1);
    device_.Decide(Slo(), now_);
    return now_ - idle_.ready_since;
  }

  // How long its next request waits for the other queue.
  Duration Wait() {
    Begin();
    const TimePoint begun = now_;
    for (TimePoint next = device_.Decide(Slo(), now_); !device_[1].run; next = device_.Decide(Slo(), now_))
      Pass(next - now_);
    return now_ - begun;
  }

 private:
  void Begin() {
    Pass(2 * target_);
    idle_.ready_since = now_;
    device_.Return(idle_);
    device_[1].run = false;
  }

  void Pass(Duration time) {
    if (device_[0].run) device_[0].service += time;
    now_ += time;
  }

  PolicyDevice device_;
  Duration target_;
  QueueView idle_;
  TimePoint now_ = kNow;
};

TEST(ServiceLevelObjectives, a_queue_that_is_not_known_is_served_at_once) {
  EXPECT_EQ(Served(milliseconds(10)).Wait(), Duration::zero());
}

TEST(ServiceLevelObjectives, a_queue_that_is_known_waits_as_long_as_its_slack_allows) {
  Served served(milliseconds(10));
  for (int i = 0; i < kMany; ++i) EXPECT_LE(served.Serve(milliseconds(2)), milliseconds(10));
  EXPECT_EQ(served.Wait(), milliseconds(10) - kReserve - milliseconds(2));
}

TEST(ServiceLevelObjectives, the_less_is_known_the_less_it_waits) {
  Served served(milliseconds(10));
  for (int i = 0; i < 100; ++i) served.Serve(milliseconds(2));
  // One request is measured when the next one begins.
  EXPECT_EQ(served.Wait(), (milliseconds(8) - kReserve) * 100 / 200);
}

TEST(ServiceLevelObjectives, requests_for_which_nobody_waited_are_not_measured) {
  PolicyDevice ready = {Request(1, milliseconds(10)), View(2, {})};
  const QueueView other = ready.Leave(1);
  TimePoint now = kNow;
  auto begin = [&] {
    now += milliseconds(20);
    ready[0].ready_since = now;
  };
  for (int i = 0; i < kMany; ++i) {
    begin();
    EXPECT_EQ(ready.Decide(Slo(), now), kNever);
    ready[0].finished_at = now += milliseconds(2);
  }
  begin();
  ready.Return(other);
  ready.Decide(Slo(), now);
  EXPECT_TRUE(ready[0].run);
  EXPECT_FALSE(ready[1].run);
}

TEST(ServiceLevelObjectives, if_requests_become_longer_one_is_late_and_no_other) {
  Served served(milliseconds(10));
  for (int i = 0; i < kMany; ++i) served.Serve(milliseconds(2));
  EXPECT_GT(served.Serve(milliseconds(5)), milliseconds(10));
  for (int i = 0; i < kMany; ++i) EXPECT_LE(served.Serve(milliseconds(5)), milliseconds(10));
}

TEST(ServiceLevelObjectives, if_requests_become_shorter_they_wait_longer) {
  Served served(milliseconds(10));
  for (int i = 0; i < kMany; ++i) served.Serve(milliseconds(5));
  for (int i = 0; i < kMany; ++i) served.Serve(milliseconds(2));
  EXPECT_EQ(served.Wait(), milliseconds(8) - kReserve);
}

TEST(ServiceLevelObjectives, one_very_long_request_is_forgotten) {
  Served served(milliseconds(10));
  served.Serve(seconds(3));
  for (int i = 0; i < 100; ++i)
    EXPECT_LE(served.Serve(milliseconds(2)), milliseconds(2)) << "it is served at once";
  for (int i = 0; i < kMany; ++i) served.Serve(milliseconds(2));
  EXPECT_EQ(served.Wait(), milliseconds(8) - kReserve);
}

TEST(ServiceLevelObjectives, when_one_has_to_start_all_that_wait_are_done_the_earliest_due_first) {
  PolicyDevice ready = {View(1, {}), Request(2, milliseconds(30)), Request(3, milliseconds(10)),
                        Request(4, milliseconds(20))};
  ready.Decide(Slo(), kNow);
  EXPECT_TRUE(ready[2].run);
  EXPECT_FALSE(ready[0].run || ready[1].run || ready[3].run);
  ready.Leave(2);
  ready.Decide(Slo(), kNow + milliseconds(1));
  EXPECT_TRUE(ready[2].run);
  EXPECT_FALSE(ready[0].run || ready[1].run);
  ready.Leave(2);
  ready.Leave(1);
  EXPECT_EQ(ready.Decide(Slo(), kNow + milliseconds(2)), kNever);
  EXPECT_TRUE(ready[0].run);
}

TEST(ServiceLevelObjectives, a_request_that_is_late_comes_after_those_that_can_be_in_time) {
  PolicyDevice ready = {Request(1, milliseconds(10)), Request(2, milliseconds(50))};
  EXPECT_EQ(ready.Decide(Slo(), kNow), kNow + milliseconds(10));
  EXPECT_TRUE(ready[0].run);
  ready.Decide(Slo(), kNow + milliseconds(10));
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  // Both are late.
  ready.Decide(Slo(), kNow + milliseconds(50));
  EXPECT_TRUE(ready[0].run);
  EXPECT_FALSE(ready[1].run);
}

TEST(ServiceLevelObjectives, a_request_that_pauses_leaves_the_device_to_the_next_one_and_not_to_the_others) {
  PolicyDevice ready = {Request(1, milliseconds(10)), Request(2, milliseconds(50)), View(3, {})};
  ready.Decide(Slo(), kNow);
  EXPECT_FALSE(ready[1].run);
  ready[0].finished_at = kNow + milliseconds(1);
  ready.Decide(Slo(), kNow + milliseconds(1));
  EXPECT_TRUE(ready[0].run && ready[1].run);
  EXPECT_FALSE(ready[2].run);
}

TEST(ServiceLevelObjectives, queues_without_a_target_run_together_and_are_never_asked_about) {
  PolicyDevice ready = {View(1, {}), View(2, {}), View(3, {})};
  EXPECT_EQ(ready.Decide(Slo()), kNever);
  for (const QueueView& queue : ready.ready()) EXPECT_TRUE(queue.run);
}

TEST(ServiceLevelObjectives, only_queues_with_a_target_hold_others_or_are_held) {
  const Hints target = WithTarget(milliseconds(5));
  EXPECT_TRUE(Slo().CanHold(target, target));
  EXPECT_TRUE(Slo().CanHold(target, {}));
  EXPECT_TRUE(Slo().CanHold({}, target));
  EXPECT_FALSE(Slo().CanHold({}, {}));
}

TEST(ServiceLevelObjectives, in_each_second_the_others_get_their_floor) {
  for (const Floor floor : {FLOOR_DEFAULT, 30, FLOOR_MAX}) {
    BusyDevice device(Slo(), {Request(1, milliseconds(1)), View(2, {}), View(3, {.floor = floor})});
    if (floor == FLOOR_DEFAULT) device[2].hints = {};
    const auto of_others = [&] { return device[1].service + device[2].service; };
    for (int second = 0; second < 3; ++second) {
      const Duration before = of_others();
      device.Pass(seconds(1));
      const auto got = std::chrono::duration<double>(of_others() - before);
      EXPECT_NEAR(got.count(), floor / 100.0, 0.006) << "floor " << floor << ", second " << second;
    }
  }
}

// It is served for 30 s, and then has no target any more.
TEST(ServiceLevelObjectives, what_a_queue_received_with_a_target_is_no_part_of_the_others_floor) {
  BusyDevice device(Slo(), {Request(1, milliseconds(1)), View(2, {}), View(3, {})});
  device.Pass(milliseconds(100));
  device[2].hints = WithTarget(milliseconds(1));
  device[2].ready_since = device.now;
  device.Pass(seconds(30));
  device[2].hints = {};
  const auto of_others = [&] { return device[1].service + device[2].service; };
  const Duration before = of_others();
  device.Pass(seconds(2));
  EXPECT_NEAR(InSeconds(of_others() - before), 2 * 0.05, 0.006);
}

TEST(ServiceLevelObjectives, a_long_command_of_one_takes_the_floor_of_the_others_for_a_moment_only) {
  BusyDevice device(Slo(), {Request(1, milliseconds(1)), View(2, {}), View(3, {})});
  device.Pass(milliseconds(100));
  device[1].service += seconds(2);
  device.Pass(seconds(2));
  const Duration before = device[2].service;
  device.Pass(seconds(2));
  EXPECT_NEAR(InSeconds(device[2].service - before), 2 * 0.05 / 2, 0.006);
}

TEST(ServiceLevelObjectives, nobody_is_owed_for_time_in_which_it_was_idle) {
  BusyDevice device(Slo(), {Request(1, milliseconds(1)), View(2, {})});
  device.Pass(milliseconds(50));
  const QueueView other = device.Leave(1);
  device.Pass(seconds(10));
  device.Return(other);
  // A floor of 5 % is a time slice of 5 ms for 100 ms of waiting, and it has waited for 50 ms.
  device.Pass(milliseconds(49));
  EXPECT_EQ(device[1].service, Duration::zero());
  device.Pass(milliseconds(10));
  EXPECT_GE(device[1].service, milliseconds(5));
}

TEST(ServiceLevelObjectives, nobody_is_owed_for_time_in_which_nobody_had_work) {
  BusyDevice device(Slo(), {View(1, {}), Request(2, milliseconds(1))});
  QueueView request = device.Leave(1);
  device.Pass(milliseconds(50));
  const QueueView other = device.Leave(0);
  device.now += seconds(10);
  request.ready_since = device.now;
  device.Return(other);
  device.Return(request);
  const Duration before = device[0].service;
  device.Pass(milliseconds(99));
  EXPECT_EQ(device[0].service, before) << "its floor is a time slice in 100 ms";
}

// The policy is not asked meanwhile.
TEST(ServiceLevelObjectives, nobody_is_owed_for_a_window_of_the_watchdog) {
  BusyDevice device(Slo(), {View(1, {}), Request(2, milliseconds(1))});
  device.Pass(milliseconds(101));
  ASSERT_TRUE(device[0].run) << "it has its floor";
  device.now += seconds(10);
  const Duration before = device[0].service;
  device.Pass(milliseconds(500));
  EXPECT_LE(device[0].service - before, milliseconds(25 + 5)) << "its floor, and a time slice";
}

// They have what is left of their floor, but the device still has a long command of the request.
TEST(ServiceLevelObjectives, what_is_left_of_a_floor_is_not_asked_for_more_often_than_a_turn_is_worth) {
  BusyDevice device(Slo(), {Request(1, milliseconds(1)), View(2, {})});
  device.Pass(milliseconds(100) + microseconds(5200));
  for (int i = 0; i < 100; ++i) {
    const TimePoint next = device.Decide();
    ASSERT_GE(next, device.now + kShortestTurn) << i;
    device.now = next;
  }
}

TEST(ServiceLevelObjectives, processes_are_taken_off_the_device_only_if_one_has_a_target) {
  std::vector<ProcessView> processes(2);
  EXPECT_EQ(Slo().Divide(processes), Division::kNone);
  processes[1].hints = WithTarget(milliseconds(5));
  EXPECT_EQ(Slo().Divide(processes), Division::kBesideHolding);
}

// ---- loads ----

sim::DeviceParameters Gpu() {
  sim::DeviceParameters device;
  device.level = 2;
  device.hold_latency = device.resume_latency = microseconds(20);
  device.preempt_latency = microseconds(50);
  device.command_latency = microseconds(12);
  return device;
}

sim::QueueLoad Batch() {
  sim::QueueLoad queue;
  queue.name = "batch";
  sim::Task task;
  task.command = microseconds(100);
  task.commands = sim::kWithoutEnd;
  task.until = seconds(1000);
  queue.tasks = {task};
  return queue;
}

enum class Arrivals { kPeriodic, kPoisson };

// Requests of 100 µs to `longest`, `per_second` of them.
sim::QueueLoad Requests(std::mt19937& random, Arrivals arrivals, double per_second, Duration longest,
                        Duration target, Duration length) {
  sim::QueueLoad queue;
  queue.hints = WithTarget(target);
  queue.hints.priority = 1;
  std::uniform_int_distribution<uint64_t> commands(1, static_cast<uint64_t>(longest / microseconds(100)));
  std::exponential_distribution<double> pause(per_second);
  for (double at = pause(random); at < InSeconds(length);
       at += arrivals == Arrivals::kPeriodic ? 1 / per_second : pause(random)) {
    sim::Task task;
    task.at = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at));
    task.command = microseconds(100);
    task.commands = commands(random);
    queue.tasks.push_back(task);
  }
  return queue;
}

sim::Load LoadOf(std::vector<sim::QueueLoad> queues, Duration length) {
  sim::Load load;
  load.devices = {Gpu()};
  load.length = length;
  for (sim::QueueLoad& queue : queues) {
    queue.level = 2;
    queue.process = static_cast<int>(load.processes.size());
    load.processes.push_back({"p", 0});
  }
  load.queues = std::move(queues);
  return load;
}

Duration P99(std::vector<Duration> latencies) {
  std::ranges::sort(latencies);
  return latencies[latencies.size() * 99 / 100];
}

TEST(ServiceLevelObjectivesOnLoads, targets_are_met_and_the_device_is_as_busy_as_by_priority) {
  constexpr Duration kLength = seconds(20);
  for (const Arrivals arrivals : {Arrivals::kPeriodic, Arrivals::kPoisson}) {
    for (int seed = 0; seed < Tries(8); ++seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      std::vector<sim::QueueLoad> queues = {Batch()};
      const int count = 1 + seed % 4;
      // Together they need 40 % of the device.
      for (int i = 0; i < count; ++i)
        queues.push_back(Requests(random, arrivals, 400.0 / count, microseconds(1900),
                                  milliseconds(20 + 10 * i), kLength));
      const sim::Load load = LoadOf(queues, kLength);
      const sim::Result result = Simulate(load, {.policy = Slo(), .warm_up = seconds(1)});
      const sim::Result hpf =
          Simulate(load, {.policy = *FindPolicy(kPolicyHighestPriorityFirst), .warm_up = seconds(1)});
      Duration busy{};
      Duration busy_by_priority{};
      for (size_t i = 0; i < load.queues.size(); ++i) {
        busy += result.queues[i].device_time;
        busy_by_priority += hpf.queues[i].device_time;
        if (i == 0) continue;
        EXPECT_GT(result.queues[i].latencies.size(), 1000U);
        EXPECT_LE(P99(result.queues[i].latencies), microseconds(load.queues[i].hints.latency_target_us))
            << "seed " << seed << ", queue " << i;
      }
      EXPECT_GE(busy, busy_by_priority * 98 / 100) << "seed " << seed;
    }
  }
}

TEST(ServiceLevelObjectivesOnLoads, others_get_more_than_if_each_request_is_served_at_once) {
  constexpr Duration kLength = seconds(10);
  std::mt19937 random(1);
  const sim::Load load = LoadOf(
      {Batch(), Requests(random, Arrivals::kPoisson, 1000, microseconds(300), milliseconds(20), kLength)},
      kLength);
  const sim::Result slo = Simulate(load, {.policy = Slo(), .warm_up = seconds(2)});
  const sim::Result hpf =
      Simulate(load, {.policy = *FindPolicy(kPolicyHighestPriorityFirst), .warm_up = seconds(2)});
  EXPECT_LE(P99(slo.queues[1].latencies), milliseconds(20));
  EXPECT_GT(slo.queues[0].device_time, hpf.queues[0].device_time * 11 / 10);
}

TEST(ServiceLevelObjectivesOnLoads, targets_that_cannot_be_met_leave_the_others_their_floor) {
  constexpr Duration kLength = seconds(10);
  std::mt19937 random(1);
  // 120 % of the device.
  sim::QueueLoad batch = Batch();
  batch.hints.floor = 20;
  const sim::Load load =
      LoadOf({batch, Requests(random, Arrivals::kPoisson, 600, microseconds(1900), milliseconds(5), kLength),
              Requests(random, Arrivals::kPoisson, 600, microseconds(1900), milliseconds(500), kLength)},
             kLength);
  const sim::Result result = Simulate(load, {.policy = Slo(), .warm_up = seconds(1)});
  EXPECT_NEAR(InSeconds(result.queues[0].device_time), 0.2 * 9, 0.2);
}

// A command that has begun runs on after a hold. That is no time that the others have.
TEST(ServiceLevelObjectivesOnLoads, others_get_their_floor_also_beside_commands_longer_than_a_timeslice) {
  for (const Floor floor : {20, 30, 80}) {
    for (const Duration command : {milliseconds(2), milliseconds(10), milliseconds(20), milliseconds(50)}) {
      for (const int level : {1, 2}) {
        sim::QueueLoad batch = Batch();
        batch.hints.floor = floor;
        sim::QueueLoad served = Batch();
        served.hints = WithTarget(milliseconds(40));
        served.tasks[0].command = command;
        sim::Load load = LoadOf({batch, served}, seconds(20));
        load.devices[0].level = level;
        load.devices[0].in_flight = 16;
        if (level == 1) load.devices[0].preempt_latency = milliseconds(2);
        for (sim::QueueLoad& queue : load.queues) queue.level = level;
        const sim::Result result = Simulate(load, {.policy = Slo(), .warm_up = seconds(2)});
        // At level 1, several commands of both are on the device at the same time.
        EXPECT_GE(std::chrono::duration<double>(result.queues[0].device_time) /
                      std::chrono::duration<double>(result.length),
                  level == 1 ? floor / 100.0 * 0.75 : floor / 100.0 - 0.005)
            << "floor " << floor << ", commands of " << command / milliseconds(1) << " ms at level " << level;
      }
    }
  }
}

TEST(ServiceLevelObjectivesOnLoads, processes_meet_the_shortest_target_of_their_queues) {
  constexpr Duration kLength = seconds(20);
  std::mt19937 random(1);
  sim::Load load = LoadOf(
      {Batch(), Requests(random, Arrivals::kPoisson, 100, microseconds(1900), milliseconds(20), kLength),
       Requests(random, Arrivals::kPoisson, 100, microseconds(1900), Duration::zero(), kLength)},
      kLength);
  load.queues[2].process = load.queues[1].process;
  const sim::Result result =
      Simulate(load, {.policy = PolicySetting(Slo(), Granularity::kProcess), .warm_up = seconds(1)});
  EXPECT_LE(P99(result.queues[1].latencies), milliseconds(20));
  EXPECT_LE(P99(result.queues[2].latencies), milliseconds(20));
  // Served at once, half of them would take 2 ms.
  std::vector<Duration> latencies = result.queues[1].latencies;
  std::ranges::sort(latencies);
  EXPECT_GT(latencies[latencies.size() / 2], milliseconds(5)) << "it has learned how long it can wait";
}

TEST(ServiceLevelObjectivesOnLoads, a_request_after_a_time_without_any_work_waits_for_nobody) {
  sim::Task task;
  task.command = milliseconds(1);
  task.commands = 500;
  sim::QueueLoad batch;
  sim::QueueLoad served;
  served.hints = WithTarget(milliseconds(20));
  for (int i = 0; i < 10; ++i) {
    task.at = seconds(20) * i;
    batch.tasks.push_back(task);
    served.tasks.push_back(task);
    served.tasks.back().at += milliseconds(10);
    served.tasks.back().commands = 2;
  }
  const sim::Result result = Simulate(LoadOf({batch, served}, seconds(200)), {.policy = Slo()});
  EXPECT_LE(*std::ranges::max_element(result.queues[1].latencies), milliseconds(5));
}

TEST(ServiceLevelObjectivesOnLoads, of_processes_each_queue_has_its_own_target) {
  const auto every = [](Duration period, uint64_t commands, Duration target) {
    sim::Task task;
    task.command = milliseconds(1);
    task.commands = commands;
    sim::QueueLoad queue;
    queue.hints = WithTarget(target);
    for (; task.at < seconds(60); task.at += period) queue.tasks.push_back(task);
    return queue;
  };
  sim::Load load =
      LoadOf({every(milliseconds(97), 2, milliseconds(20)), every(milliseconds(1000), 300, milliseconds(900)),
              every(milliseconds(103), 40, milliseconds(60))},
             seconds(60));
  load.queues[1].process = load.queues[0].process;
  const sim::Result result =
      Simulate(load, {.policy = PolicySetting(Slo(), Granularity::kProcess), .warm_up = seconds(30)});
  for (size_t i = 0; i < load.queues.size(); ++i)
    EXPECT_LE(P99(result.queues[i].latencies), microseconds(load.queues[i].hints.latency_target_us)) << i;
}

}  // namespace
}  // namespace xsched::sched::slo
