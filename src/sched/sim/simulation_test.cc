// Loads on a device model: what a policy, the levels and the device's own ways make of them.
#include "sched/sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace xsched::sched::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Task Endless(Duration command) {
  Task task;
  task.commands = kWithoutEnd;
  task.command = command;
  task.until = seconds(1000);
  return task;
}

Task At(Duration at, uint64_t commands, Duration command) {
  Task task;
  task.at = at;
  task.commands = commands;
  task.command = command;
  return task;
}

// Each queue has a process of its own, unless a test changes that.
Load LoadOf(const DeviceParameters& device, std::vector<QueueLoad> queues) {
  Load load;
  load.devices = {device};
  load.length = seconds(1);
  for (QueueLoad& queue : queues) {
    queue.process = static_cast<int>(load.processes.size());
    queue.level = device.level;
    load.processes.push_back({"p", 0});
  }
  load.queues = std::move(queues);
  return load;
}

QueueLoad Queue(Priority priority, std::vector<Task> tasks) {
  QueueLoad queue;
  queue.hints.priority = priority;
  queue.tasks = std::move(tasks);
  return queue;
}

DeviceParameters WithSlices() {
  DeviceParameters device;
  device.level = 3;
  device.slice = milliseconds(2);
  return device;
}

Result Native(const Load& load, Order order = Order::kInTurn) {
  Conditions conditions;
  conditions.order = order;
  return Simulate(load, conditions);
}

Result With(XPolicyType policy, const Load& load) {
  Conditions conditions;
  conditions.policy = *FindPolicy(policy);
  return Simulate(load, conditions);
}

double Share(Duration time, const Load& load) {
  return static_cast<double>(time.count()) / static_cast<double>(load.length.count());
}

constexpr XPolicyType kHpf = kPolicyHighestPriorityFirst;

TEST(Simulation, tasks_that_come_while_there_is_always_work_run_when_that_ends) {
  Task endless = Endless(milliseconds(1));
  endless.until = milliseconds(100);
  Task another = endless;
  another.at = milliseconds(60);
  another.until = milliseconds(150);
  const Load load = LoadOf({}, {Queue(0, {endless, At(milliseconds(50), 2, milliseconds(1)), another,
                                          At(milliseconds(200), 2, milliseconds(1))})});
  for (const Result& result : {Native(load), With(kHpf, load)}) {
    ASSERT_EQ(result.queues[0].latencies.size(), 2u);
    EXPECT_NEAR(static_cast<double>(result.queues[0].latencies[0] / microseconds(1)), 52'000, 1100);
    EXPECT_NEAR(static_cast<double>(result.queues[0].latencies[1] / microseconds(1)), 2000, 100);
    EXPECT_NEAR(static_cast<double>(result.queues[0].commands), 152, 3);
  }
}

TEST(Simulation, a_task_alone_takes_its_commands_and_the_command_latency) {
  DeviceParameters device;
  device.command_latency = microseconds(12);
  const Result result = Native(LoadOf(device, {Queue(0, {At(milliseconds(5), 10, microseconds(200))})}));
  ASSERT_EQ(result.queues[0].latencies.size(), 1u);
  EXPECT_EQ(result.queues[0].latencies[0], microseconds(2012));
  EXPECT_EQ(result.queues[0].commands, 10u);
  EXPECT_EQ(result.queues[0].device_time, milliseconds(2));
}

TEST(Simulation, tasks_of_a_queue_wait_for_each_other) {
  const Result result = Native(LoadOf(
      {}, {Queue(0, {At(milliseconds(1), 1, milliseconds(4)), At(milliseconds(2), 1, milliseconds(4))})}));
  ASSERT_EQ(result.queues[0].latencies.size(), 2u);
  EXPECT_EQ(result.queues[0].latencies[1], milliseconds(7));
}

TEST(Simulation, natively_a_device_without_slices_takes_commands_in_turn) {
  const Result result = Native(LoadOf(
      {}, {Queue(0, {Endless(milliseconds(1))}), Queue(9, {At(microseconds(500), 4, milliseconds(1))})}));
  // The rest of the running command, its own four, and three of the other between them.
  EXPECT_EQ(result.queues[1].latencies[0], microseconds(7500));
}

TEST(Simulation, in_order_of_arrival_a_task_waits_for_the_whole_one_before) {
  const Result result = Native(LoadOf({}, {Queue(0, {At(milliseconds(1), 100, milliseconds(1))}),
                                           Queue(9, {At(milliseconds(2), 4, milliseconds(1))})}),
                               Order::kByArrival);
  EXPECT_EQ(result.queues[1].latencies[0], milliseconds(103));
}

TEST(Simulation, slices_change_in_the_middle_of_a_command_and_cost_what_they_cost) {
  DeviceParameters device = WithSlices();
  device.switch_running = microseconds(200);
  device.switch_idle = microseconds(100);
  const Result result = Native(LoadOf(
      device, {Queue(0, {Endless(milliseconds(100))}), Queue(0, {At(milliseconds(3), 1, milliseconds(3))})}));
  // One ms is left of the other's slice; then its own slice, the other's and the rest of its own.
  EXPECT_EQ(result.queues[1].latencies[0], microseconds(1000 + 200 + 2000 + 200 + 2000 + 200 + 1000));
}

TEST(Simulation, two_busy_processes_lose_what_the_changes_take) {
  DeviceParameters device = WithSlices();
  device.switch_running = microseconds(200);
  const Result result =
      Native(LoadOf(device, {Queue(0, {Endless(microseconds(20))}), Queue(0, {Endless(milliseconds(10))})}));
  for (const QueueResult& queue : result.queues) {
    EXPECT_NEAR(std::chrono::duration<double>(queue.device_time).count(), 0.5 * 2.0 / 2.2, 0.01);
  }
}

TEST(Simulation, a_held_queue_stops_at_its_next_gate_at_level_2) {
  DeviceParameters device;
  device.level = 2;
  device.preempt_latency = milliseconds(2);
  device.hold_latency = microseconds(10);
  const Load load = LoadOf(device, {Queue(0, {Endless(microseconds(500))}),
                                    Queue(1, {At(microseconds(100'700), 8, milliseconds(1))})});
  // It comes in the second of the four commands before a gate. Its own eight take turns with the other two.
  EXPECT_EQ(With(kHpf, load).queues[1].latencies[0], microseconds(300 + 8000 + 1000));
}

TEST(Simulation, at_level_1_what_is_in_flight_runs_on) {
  DeviceParameters device;
  device.in_flight = 3;
  device.preempt_latency = seconds(1);
  // The urgent task takes turns with the three in flight.
  const Load load = LoadOf(device, {Queue(0, {Endless(milliseconds(1))}),
                                    Queue(1, {At(microseconds(10'500), 4, milliseconds(1))})});
  EXPECT_EQ(With(kHpf, load).queues[1].latencies[0], microseconds(500 + 4000 + 2000));
}

TEST(Simulation, at_level_1_shares_count_what_runs_on_after_a_hold) {
  DeviceParameters device;
  device.in_flight = 4;
  device.preempt_latency = milliseconds(2);
  Load load = LoadOf(device, {Queue(0, {Endless(milliseconds(2))}), Queue(0, {Endless(milliseconds(2))})});
  load.length = seconds(10);
  load.queues[0].hints.utilization = 75;
  load.queues[1].hints.utilization = 25;
  const Result result = With(kPolicyUtilizationPartition, load);
  EXPECT_NEAR(Share(result.queues[0].device_time, load), 0.75, 0.005);
  EXPECT_NEAR(Share(result.queues[0].device_time + result.queues[1].device_time, load), 1, 0.01);
}

DeviceParameters EndsWhatItHasBegun(int level) {
  DeviceParameters device;
  device.level = level;
  device.preempt_latency = level == 1 ? milliseconds(2) : microseconds(100);
  device.in_flight = 16;
  return device;
}

// One program has commands of 20 ms, the other of 0.2 ms, on a device that ends what it has begun.
class LongBesideShort : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static Load LoadFor(int percent_of_long) {
    Load load = LoadOf(EndsWhatItHasBegun(std::get<1>(GetParam())),
                       {Queue(0, {Endless(milliseconds(20))}), Queue(0, {Endless(microseconds(200))})});
    load.length = seconds(20);
    for (size_t i : {0, 1}) {
      const int percent = i == 0 ? percent_of_long : 100 - percent_of_long;
      load.queues[i].hints.utilization = load.queues[i].hints.weight = percent;
    }
    return load;
  }
  // How long the commands of each take has to be learned first.
  static Result Run(Load& load) {
    Conditions conditions;
    conditions.policy = *FindPolicyByName(std::get<0>(GetParam()));
    conditions.warm_up = seconds(2);
    Result result = Simulate(load, conditions);
    load.length = result.length;
    return result;
  }
};

TEST_P(LongBesideShort, each_has_its_share) {
  const bool by_priority = FindPolicyByName(std::get<0>(GetParam()))->info().hints.priority;
  for (const int percent : {50, 75, 20, 90}) {
    if (by_priority && percent != 50) continue;
    Load load = LoadFor(percent);
    const Result result = Run(load);
    EXPECT_NEAR(Share(result.queues[0].device_time, load), percent / 100.0, 0.01);
    EXPECT_NEAR(Share(result.queues[1].device_time, load), 1 - percent / 100.0, 0.01);
  }
}

TEST_P(LongBesideShort, each_has_its_share_also_with_commands_of_50_ms) {
  Load load = LoadFor(50);
  load.queues[0].tasks = {Endless(milliseconds(50))};
  EXPECT_NEAR(Share(Run(load).queues[0].device_time, load), 0.5, 0.015);
}

TEST_P(LongBesideShort, each_has_its_share_if_both_have_long_commands) {
  if (FindPolicyByName(std::get<0>(GetParam()))->info().hints.priority) return;
  Load load = LoadFor(75);
  load.queues[1].tasks = {Endless(milliseconds(20))};
  EXPECT_NEAR(Share(Run(load).queues[0].device_time, load), 0.75, 0.015);
}

// The device has something of all three for most of the time.
TEST_P(LongBesideShort, each_of_three_has_its_share) {
  Load load = LoadFor(50);
  load.processes.push_back(load.processes[1]);
  load.queues.push_back(load.queues[1]);
  load.queues[2].process = 2;
  for (QueueLoad& queue : load.queues) queue.hints.utilization = queue.hints.weight = 40;
  const Result result = Run(load);
  for (const QueueResult& queue : result.queues) EXPECT_NEAR(Share(queue.device_time, load), 1.0 / 3, 0.015);
}

// At level 1, a command that comes after a pause finds an open gate.
class LongTasksBesideShort : public LongBesideShort {};

// It is done with a command while it is held, and pauses. What it owes is more than a time slice.
TEST_P(LongTasksBesideShort, a_pause_after_each_of_them_pays_no_debt) {
  Load load = LoadFor(50);
  Task task = At(Duration::zero(), 1, milliseconds(20));
  task.repeat = milliseconds(1);
  task.until = load.length;
  load.queues[0].tasks = {task};
  const Result result = Run(load);
  EXPECT_LE(Share(result.queues[0].device_time, load), 0.51);
  EXPECT_GE(Share(result.queues[0].device_time, load), 0.45);
}

// The next one begins when the device has nothing more of the one before.
class AtLevel1 : public testing::TestWithParam<const char*> {};

TEST_P(AtLevel1, shares_are_exact_whatever_the_lengths_of_the_commands) {
  DeviceParameters device = EndsWhatItHasBegun(1);
  device.hold_latency = microseconds(15);
  device.resume_latency = microseconds(60);
  const double wanted = FindPolicyByName(GetParam())->type() == kPolicyCompletelyFairScheduler ? 0.5 : 0.75;
  const Duration lengths[] = {microseconds(100), microseconds(500), milliseconds(1), milliseconds(2),
                              milliseconds(5),   milliseconds(8),   milliseconds(20)};
  for (const Duration one : lengths) {
    for (const Duration other : lengths) {
      Load load = LoadOf(device, {Queue(0, {Endless(one)}), Queue(0, {Endless(other)})});
      load.length = seconds(12);
      load.queues[0].hints = {.utilization = 75, .weight = 300, .guarantee_us = 75'000, .period_us = 100'000};
      load.queues[1].hints = {.utilization = 25, .weight = 100, .guarantee_us = 25'000, .period_us = 100'000};
      Conditions conditions;
      conditions.policy = *FindPolicyByName(GetParam());
      conditions.warm_up = seconds(2);
      const Result result = Simulate(load, conditions);
      load.length = result.length;
      const double first = Share(result.queues[0].device_time, load);
      const double both = first + Share(result.queues[1].device_time, load);
      EXPECT_NEAR(first / both, wanted, 0.01) << one / microseconds(1) << " and " << other / microseconds(1);
      EXPECT_GE(both, 0.97) << one / microseconds(1) << " and " << other / microseconds(1);
    }
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<const char*, int>>& tried) {
  return std::string(std::get<0>(tried.param)) + "_at_level_" + std::to_string(std::get<1>(tried.param));
}
const auto kPoliciesOfShares = testing::Values("UP", "PUP", "CFS", "EEVDF");
INSTANTIATE_TEST_SUITE_P(Simulation, LongBesideShort,
                         testing::Combine(kPoliciesOfShares, testing::Values(1, 2)), NameOf);
INSTANTIATE_TEST_SUITE_P(Simulation, AtLevel1, testing::Values("UP", "CFS", "EEVDF", "RESERVE"),
                         [](const auto& tried) { return std::string(tried.param); });
INSTANTIATE_TEST_SUITE_P(Simulation, LongTasksBesideShort,
                         testing::Combine(kPoliciesOfShares, testing::Values(2)), NameOf);

// The same under RESERVE. Times of hints are in milliseconds.
class LongBesideShortReserved : public testing::TestWithParam<int> {
 protected:
  static Hints Reserved(int guarantee, int period, int limit = 0, int burst = 0) {
    return {.guarantee_us = 1000 * guarantee,
            .period_us = 1000 * period,
            .limit_us = 1000 * limit,
            .burst_us = 1000 * burst};
  }
  static Load LoadFor(const Hints& of_long, const Hints& of_short) {
    Load load = LoadOf(EndsWhatItHasBegun(GetParam()),
                       {Queue(0, {Endless(milliseconds(20))}), Queue(0, {Endless(microseconds(200))})});
    load.length = seconds(20);
    load.queues[0].hints = of_long;
    load.queues[1].hints = of_short;
    return load;
  }
  // What each has of the time after the first `warm_up`.
  static std::vector<double> Shares(const Load& load, Duration warm_up = seconds(2)) {
    Conditions conditions;
    conditions.policy = *FindPolicy(kPolicyReservation);
    conditions.warm_up = warm_up;
    const Result result = Simulate(load, conditions);
    std::vector<double> shares;
    for (const QueueResult& queue : result.queues)
      shares.push_back(std::chrono::duration<double>(queue.device_time) /
                       std::chrono::duration<double>(result.length));
    return shares;
  }
  static std::vector<double> Shares(const Hints& of_long, const Hints& of_short) {
    return Shares(LoadFor(of_long, of_short));
  }
};

TEST_P(LongBesideShortReserved, guarantees_of_all_of_the_device_are_kept) {
  for (const int percent : {5, 30, 50}) {
    for (const int period : {10, 100}) {
      if (period * percent <= 100) continue;  // turns of 1 ms show nothing of long commands
      const std::vector<double> shares =
          Shares(Reserved(period * percent / 100, period), Reserved(period * (100 - percent) / 100, period));
      EXPECT_NEAR(shares[0], percent / 100.0, 0.01) << percent << " % of " << period << " ms";
      EXPECT_NEAR(shares[1], 1 - percent / 100.0, 0.01) << percent << " % of " << period << " ms";
    }
  }
}

TEST_P(LongBesideShortReserved, a_guarantee_is_kept_beside_one_that_has_none) {
  for (const int percent : {50, 80}) {
    const double left_over = 1 - percent / 100.0;
    EXPECT_NEAR(Shares({}, Reserved(percent, 100))[1], percent / 100.0 + left_over / 2, 0.01) << percent;
  }
}

TEST_P(LongBesideShortReserved, a_guarantee_that_is_the_limit_as_well_is_kept) {
  EXPECT_NEAR(Shares({}, Reserved(20, 100, 20))[1], 0.2, 0.01);
  EXPECT_NEAR(Shares(Reserved(20, 100, 20), {})[0], 0.2, 0.01);
}

TEST_P(LongBesideShortReserved, limits_hold) {
  for (const Hints& limited :
       {Reserved(0, 100, 20), Reserved(0, 100, 20, 20), Reserved(0, 10, 2), Reserved(0, 100, 10)}) {
    const double limit = static_cast<double>(limited.limit_us) / static_cast<double>(limited.period_us);
    const double share = Shares(limited, {})[0];
    EXPECT_LE(share, limit + 0.01) << limited.limit_us << " of " << limited.period_us;
    EXPECT_GE(share, limit - 0.02) << limited.limit_us << " of " << limited.period_us;
    Load alone = LoadFor(limited, {});
    alone.queues.pop_back();
    EXPECT_NEAR(Shares(alone)[0], limit, 0.01) << limited.limit_us << " of " << limited.period_us;
  }
}

TEST_P(LongBesideShortReserved, limits_of_both_hold) {
  const std::vector<double> shares = Shares(Reserved(0, 100, 20), Reserved(0, 100, 20));
  EXPECT_NEAR(shares[0], 0.2, 0.01);
  EXPECT_NEAR(shares[1], 0.2, 0.01);
}

TEST_P(LongBesideShortReserved, what_is_left_over_goes_round_by_weight) {
  const std::vector<double> shares = Shares({.weight = 300}, {.weight = 100});
  EXPECT_NEAR(shares[0], 0.75, 0.01);
  EXPECT_NEAR(shares[1], 0.25, 0.01);
}

// In some periods there is one more, and then none for some. What is counted late makes it two.
TEST_P(LongBesideShortReserved, a_second_exceeds_a_limit_or_misses_a_guarantee_by_two_long_commands_at_most) {
  for (int second = 2; second < 12; ++second) {
    Load load = LoadFor(Reserved(0, 100, 20), Reserved(70, 100));
    load.length = seconds(second + 1);
    const std::vector<double> shares = Shares(load, seconds(second));
    EXPECT_LE(shares[0], 0.2 + 0.04) << second;
    EXPECT_GE(shares[1], 0.7 - 0.04) << second;
  }
}

INSTANTIATE_TEST_SUITE_P(Simulation, LongBesideShortReserved, testing::Values(1, 2),
                         [](const auto& tried) { return "at_level_" + std::to_string(tried.param); });

TEST(Simulation, gates_take_time_of_a_queue_that_may_be_held) {
  DeviceParameters device;
  device.level = 2;
  device.preempt_latency = microseconds(50);
  device.gate = microseconds(3);
  const Load load = LoadOf(device, {Queue(0, {Endless(microseconds(10))}), Queue(1, {})});
  EXPECT_NEAR(std::chrono::duration<double>(With(kHpf, load).queues[0].device_time).count(), 50.0 / 53,
              0.002);
  EXPECT_GT(Native(load).queues[0].device_time, milliseconds(999));
}

// Of another process, which has only this queue.
TEST(Simulation, gates_take_time_from_when_another_queue_comes_until_it_is_gone) {
  DeviceParameters device;
  device.level = 2;
  device.preempt_latency = microseconds(50);
  device.gate = microseconds(3);
  Task task = At(Duration::zero(), 10, microseconds(10));
  task.repeat = Duration::zero();
  task.until = seconds(1);
  Load load = LoadOf(device, {Queue(0, {task}), Queue(1, {})});
  load.queues[1].from = milliseconds(300);
  load.queues[1].gone = milliseconds(600);
  const auto share_between = [&](int from, int until) {
    Conditions conditions;
    conditions.policy = *FindPolicy(kHpf);
    conditions.warm_up = milliseconds(from);
    load.length = milliseconds(until);
    return std::chrono::duration<double, std::milli>(Simulate(load, conditions).queues[0].device_time)
               .count() /
           (until - from);
  };
  EXPECT_NEAR(share_between(0, 300), 1, 0.002);
  EXPECT_NEAR(share_between(300, 600), 50.0 / 53, 0.002);
  EXPECT_NEAR(share_between(600, 1000), 1, 0.002);
}

TEST(Simulation, a_program_that_is_bound_by_launch_cost_has_fewer_commands) {
  Task task = Endless(microseconds(5));
  task.launch = microseconds(20);
  const Result result = Native(LoadOf({}, {Queue(0, {task})}));
  EXPECT_NEAR(static_cast<double>(result.queues[0].commands), 50'000, 10);
  EXPECT_NEAR(std::chrono::duration<double>(result.queues[0].device_time).count(), 0.25, 0.001);
}

// Its shortest slice goes to the urgent process at once, also in the middle of a command.
TEST(Simulation, at_level_3_an_urgent_process_interrupts_a_long_command) {
  DeviceParameters device = WithSlices();
  device.switch_running = microseconds(200);
  const Load load = LoadOf(
      device, {Queue(0, {Endless(milliseconds(50))}), Queue(1, {At(milliseconds(500), 1, milliseconds(4))})});
  EXPECT_LE(With(kHpf, load).queues[1].latencies[0], microseconds(4000 + 200 + 1));
  EXPECT_GE(Native(load).queues[1].latencies[0], milliseconds(6));
}

// Why policies that hold queues should also divide the time of such a device.
// Holds all but one queue, and leaves the slices of processes as they are.
class OneByGates final : public Policy {
 public:
  using Policy::Policy;
  TimePoint Decide(const DeviceView& device) const override {
    for (QueueView& queue : device.ready) queue.run = &queue == device.ready.data();
    return kNever;
  }
  bool CanHold(const Hints&, const Hints&) const override { return true; }
};

TEST(Simulation, a_process_that_waits_at_a_gate_of_the_device_uses_up_its_slices) {
  constexpr PolicyInfo kInfo = {
      .type = kPolicyMultiLevelFeedbackQueue, .name = "ONE", .summary = "", .hints = {}};
  const OneByGates policy(kInfo);
  Conditions conditions;
  conditions.policy = policy;
  const Result result = Simulate(
      LoadOf(WithSlices(), {Queue(0, {Endless(milliseconds(1))}), Queue(0, {Endless(milliseconds(1))})}),
      conditions);
  const Duration busy = result.queues[0].device_time + result.queues[1].device_time;
  EXPECT_NEAR(std::chrono::duration<double>(busy).count(), 0.5, 0.05);
}

// Whether the others would do more if they shared the device is found out between two urgent tasks.
TEST(Simulation, processes_that_fill_the_device_do_not_share_it_beside_an_urgent_one_that_comes_often) {
  QueueLoad urgent = Queue(5, {});
  for (int i = 1; i < 200; ++i) urgent.tasks.push_back(At(milliseconds(50 * i), 50, microseconds(40)));
  DeviceParameters device = WithSlices();
  device.switch_running = microseconds(200);
  const QueueLoad busy = Queue(0, {Endless(microseconds(40))});
  Load load = LoadOf(device, {urgent, busy, busy});
  load.length = seconds(10);
  std::vector<Duration> latencies = With(kHpf, load).queues[0].latencies;
  const auto median = latencies.begin() + std::ssize(latencies) / 2;
  std::nth_element(latencies.begin(), median, latencies.end());
  EXPECT_LT(*median, microseconds(2500));
}

TEST(Simulation, a_task_that_waits_for_another_queue_begins_after_it) {
  Task second = At(milliseconds(10), 1, milliseconds(1));
  second.waits_for = 0;
  Load load = LoadOf({}, {Queue(0, {At(milliseconds(10), 5, milliseconds(1))}), Queue(9, {second})});
  load.devices.push_back({});
  load.queues[1].device = 1;
  EXPECT_EQ(Native(load).queues[1].latencies[0], milliseconds(6));
  EXPECT_EQ(With(kHpf, load).queues[1].latencies[0], milliseconds(6));
}

// It inherits the urgency of the queue that waits for it.
TEST(Simulation, a_held_queue_runs_if_an_urgent_one_waits_for_it) {
  DeviceParameters device;
  Task urgent = At(milliseconds(10), 1, milliseconds(1));
  urgent.waits_for = 0;
  const Load load = LoadOf(device, {Queue(0, {At(milliseconds(10), 5, milliseconds(1))}),
                                    Queue(5, {Endless(milliseconds(1))}), Queue(9, {urgent})});
  EXPECT_LE(With(kHpf, load).queues[2].latencies.at(0), milliseconds(5 + 1 + 2));
}

TEST(Simulation, a_closed_loop_goes_on_after_its_pause) {
  Task task = At(Duration::zero(), 2, milliseconds(2));
  task.repeat = milliseconds(6);
  task.until = milliseconds(95);
  const Result result = Native(LoadOf({}, {Queue(0, {task})}));
  EXPECT_EQ(result.queues[0].latencies.size(), 10u);
}

// Each of them is a thread of the program.
TEST(Simulation, a_closed_loop_does_not_keep_other_tasks_of_its_queue_waiting) {
  Task loop = At(Duration::zero(), 1, milliseconds(1));
  loop.repeat = milliseconds(9);
  loop.until = seconds(1);
  std::vector<Task> tasks = {loop};
  for (int i = 1; i < 10; ++i) tasks.push_back(At(milliseconds(100 * i + 5), 1, milliseconds(7)));
  Task second = loop;
  second.at = milliseconds(500);
  tasks.insert(tasks.begin() + 6, second);
  const Result result = Native(LoadOf({}, {Queue(0, tasks)}));
  const auto& latencies = result.queues[0].latencies;
  // And one of a loop may have to wait for such a task.
  EXPECT_GE(std::ranges::count_if(latencies, [](Duration time) { return time >= milliseconds(7); }), 9);
  EXPECT_LE(*std::ranges::max_element(latencies), milliseconds(7 + 1 + 1));
  EXPECT_NEAR(static_cast<double>(latencies.size()), 9 + 100 + 50, 3);
}

TEST(Simulation, a_task_that_follows_comes_when_the_one_before_has_ended) {
  Task following = At(milliseconds(3), 1, milliseconds(1));
  following.follows = true;
  const Result result =
      Native(LoadOf({}, {Queue(0, {At(milliseconds(1), 1, milliseconds(2)), following, following})}));
  EXPECT_EQ(result.queues[0].latencies.size(), 3u);
  for (size_t i : {1, 2}) EXPECT_EQ(result.queues[0].latencies[i], milliseconds(1));
}

TEST(Simulation, hints_change_at_their_time_and_deadlines_are_counted) {
  QueueLoad task = Queue(0, {});
  task.hints.deadline_us = 9000;
  for (int i = 1; i <= 9; ++i) task.tasks.push_back(At(milliseconds(100 * i), 3, milliseconds(1)));
  task.changes = {{milliseconds(450), {.priority = 5, .deadline_us = 9000}}};
  DeviceParameters device = {};
  const Load load = LoadOf(device, {task, Queue(1, {Endless(milliseconds(1))})});
  const Result result = With(kHpf, load);
  // Held for good by the more urgent one, and then more urgent itself.
  EXPECT_EQ(result.queues[0].latencies.size(), 9u);
  EXPECT_EQ(result.queues[0].missed, 4u);
}

TEST(Simulation, a_task_is_late_by_the_deadline_that_its_queue_had_when_it_came) {
  QueueLoad queue = Queue(0, {});
  for (int i = 0; i < 10; ++i) queue.tasks.push_back(At(milliseconds(100 * i), 1, milliseconds(30)));
  queue.changes = {{milliseconds(300), {.deadline_us = 10'000}},  // from the fourth task on,
                   {milliseconds(710), {}}};                      // while the eighth runs
  const Load load = LoadOf({}, {queue});
  EXPECT_EQ(Native(load).queues[0].missed, 5u);
  EXPECT_EQ(With(kHpf, load).queues[0].missed, 5u);
}

TEST(Simulation, overrides_leave_the_other_hints_as_they_change) {
  QueueLoad queue = Queue(0, {});
  for (int i = 0; i < 10; ++i) queue.tasks.push_back(At(milliseconds(100 * i), 3, milliseconds(1)));
  queue.changes = {{milliseconds(450), {.priority = 5}}};
  const Load load = LoadOf({}, {queue, Queue(1, {Endless(milliseconds(1))})});
  Conditions conditions;
  conditions.policy = *FindPolicy(kHpf);
  conditions.hints.resize(2);
  conditions.hints[0].deadline_us = 9000;
  // The first five are held until it has the higher priority.
  EXPECT_EQ(Simulate(load, conditions).queues[0].missed, 5u);
  conditions.hints[0].priority = 5;
  EXPECT_EQ(Simulate(load, conditions).queues[0].missed, 0u);
}

TEST(Simulation, a_queue_that_is_gone_has_done_its_work_before) {
  QueueLoad queue = Queue(0, {At(milliseconds(90), 100, milliseconds(1))});
  queue.gone = milliseconds(100);
  Task urgent = Endless(milliseconds(1));
  urgent.until = milliseconds(300);
  const Load load = LoadOf({}, {queue, Queue(1, {urgent})});
  for (const Result& result : {Native(load), With(kHpf, load)})
    EXPECT_EQ(result.queues[0].latencies.size(), 1u);
  EXPECT_GE(With(kHpf, load).queues[0].latencies[0], milliseconds(300));
}

TEST(Simulation,
     tasks_that_have_not_ended_by_the_end_of_the_load_are_missed_once_they_are_past_their_deadline) {
  QueueLoad starved = Queue(0, {});
  starved.hints.deadline_us = 250'000;
  for (int i = 0; i < 10; ++i) starved.tasks.push_back(At(milliseconds(100 * i), 3, milliseconds(1)));
  Task urgent = Endless(milliseconds(1));
  urgent.at = milliseconds(50);
  const Result result = With(kHpf, LoadOf({}, {starved, Queue(5, {urgent})}));
  EXPECT_EQ(result.queues[0].latencies.size(), 1u);
  ASSERT_EQ(result.queues[0].ages.size(), 9u);
  EXPECT_EQ(result.queues[0].ages[0], milliseconds(900));
  EXPECT_EQ(result.queues[0].missed, 7u) << "two of the others came less than 250 ms before the end";
  EXPECT_TRUE(result.queues[1].ages.empty()) << "it always has work, which has no end to wait for";
}

TEST(Simulation, what_happens_in_the_warm_up_does_not_count) {
  const Load load = LoadOf(
      {}, {Queue(0, {At(milliseconds(10), 1, milliseconds(1)), At(milliseconds(700), 1, milliseconds(1))})});
  Conditions conditions;
  conditions.warm_up = milliseconds(500);
  const Result result = Simulate(load, conditions);
  EXPECT_EQ(result.queues[0].latencies.size(), 1u);
  EXPECT_EQ(result.queues[0].commands, 1u);
  EXPECT_EQ(result.length, milliseconds(500));
}

TEST(Simulation, the_same_load_gives_the_same_result) {
  const Load load =
      LoadOf(WithSlices(), {Queue(0, {Endless(microseconds(30))}), Queue(0, {Endless(milliseconds(3))}),
                            Queue(3, {At(milliseconds(7), 4, milliseconds(1))})});
  const Result one = With(kPolicyCompletelyFairScheduler, load);
  const Result two = With(kPolicyCompletelyFairScheduler, load);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(one.queues[i].device_time, two.queues[i].device_time);
    EXPECT_EQ(one.queues[i].latencies, two.queues[i].latencies);
  }
}

// Commands in a row are one step, whatever their number.
TEST(Simulation, an_hour_of_short_commands_takes_few_steps) {
  Load load = LoadOf({}, {Queue(0, {Endless(microseconds(3))})});
  load.length = std::chrono::hours(1);
  load.queues[0].tasks[0].until = load.length;
  const Result result = Native(load);
  EXPECT_GT(result.queues[0].commands, 1'000'000'000u);
  EXPECT_LT(result.events, 10'000u);
}

}  // namespace
}  // namespace xsched::sched::sim
