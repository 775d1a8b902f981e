// Chains of policies, on loads in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "sched/sim/simulator.h"
#include "sched/testing/timeline.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string TextOf(const PolicySetting& setting) {
  char text[kPolicyTextSize];
  WritePolicySetting(setting, text);
  return text;
}

// Time in which an urgent queue runs is nobody's credit.
TEST(PolicyChainShares, of_a_class_stay_exact_while_a_higher_class_comes_and_goes) {
  SimulatedQueue urgent;
  urgent.hints.priority = 10;
  urgent.command = microseconds(100);
  urgent.commands = 30;
  urgent.period = milliseconds(20);
  SimulatedQueue large, small;
  large.hints.utilization = 75;
  small.hints.utilization = 25;
  for (SimulatedQueue* queue : {&large, &small}) {
    queue->command = microseconds(50);
    queue->in_flight = 0;
  }
  const SimulationResult result = Simulate(*ParsePolicySetting("HPF/UP"), {urgent, large, small}, seconds(2));
  auto seconds_of = [&](int i) { return InSeconds(result.queues[static_cast<size_t>(i)].device_time); };
  EXPECT_NEAR(seconds_of(1) / (seconds_of(1) + seconds_of(2)), 0.75, 0.01);
  EXPECT_NEAR(seconds_of(0), 0.3, 0.01);
  for (Duration latency : result.queues[0].latencies) EXPECT_LE(latency, microseconds(3200));
}

// Its first queue has a higher class for a while, and so has the device alone.
class PolicyChainReturn : public Timeline, public testing::WithParamInterface<const char*> {};

TEST_P(PolicyChainReturn, owes_nothing_for_the_time_in_a_higher_class) {
  sliceable_ = false;
  scheduler_.SetPolicy(*ParsePolicySetting(GetParam()));
  for (uint64_t id : {1, 2}) {
    Add(id, 0);
    scheduler_.SetHints(QueueId{id}, {.utilization = 50});
    Busy(id);
  }
  Duration ran[2] = {};
  const auto pass = [&](int ms) {
    for (int i = 0; i < ms; ++i) {
      for (uint64_t id : {1, 2}) {
        if (!Runs(id)) continue;
        ran[id - 1] += milliseconds(1);
        RetireOne(id);
      }
      Pass(milliseconds(1));
    }
  };
  pass(1000);
  scheduler_.SetHints(QueueId{1}, {.priority = 1, .utilization = 50});
  Decide();
  pass(5000);
  scheduler_.SetHints(QueueId{1}, {.utilization = 50});
  Decide();
  ran[0] = ran[1] = {};
  pass(1000);
  EXPECT_NEAR(InSeconds(ran[0]), 0.5, 0.05);
  EXPECT_NEAR(InSeconds(ran[1]), 0.5, 0.05);
}
INSTANTIATE_TEST_SUITE_P(Chains, PolicyChainReturn,
                         testing::Values("HPF/UP", "HPF/PUP", "HPF/RESERVE", "HPF/EEVDF", "HPF/CFS:process"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

class PolicyChainLimits : public Timeline {
 protected:
  Duration Ran(uint64_t id, Duration time) {
    Duration ran{};
    for (Duration passed{}; passed < time; passed += milliseconds(1)) {
      for (uint64_t each = 1; each <= 5; ++each) {
        if (retired_.count(each) == 0 || !Runs(each)) continue;
        if (each == id) ran += milliseconds(1);
        RetireOne(each);
      }
      Pass(milliseconds(1));
    }
    return ran;
  }
};

TEST_F(PolicyChainLimits, however_many_classes_have_used_them_up_the_next_one_runs) {
  sliceable_ = false;
  scheduler_.SetPolicy(*ParsePolicySetting("HPF/RESERVE"));
  for (uint64_t id = 1; id <= 5; ++id) {
    Add(id, 0);
    if (id < 5)
      scheduler_.SetHints(
          QueueId{id}, {.priority = static_cast<Priority>(6 - id), .period_us = 100'000, .limit_us = 10'000});
    Busy(id);
  }
  EXPECT_GE(Ran(5, seconds(1)), milliseconds(500));
}

TEST_F(PolicyChainLimits, nobody_waits_on_one_device_for_who_has_used_them_up_on_another) {
  sliceable_ = false;
  scheduler_.SetPolicy(*ParsePolicySetting("HHPF/RESERVE"));
  Add(1, 0, kGpu + 1);
  scheduler_.SetHints(QueueId{1}, {.priority = 1, .period_us = 100'000, .limit_us = 10'000});
  Add(2, 0);
  Busy(1);
  Busy(2);
  EXPECT_GE(Ran(2, seconds(1)), milliseconds(800));
}

// Every policy, by queue and by process, alone and before every other one.
std::vector<PolicySetting> SinglesAndPairs() {
  std::vector<PolicySetting> settings;
  for (PolicyGetter first : Policies()) {
    for (Granularity by : {Granularity::kQueue, Granularity::kProcess}) {
      settings.emplace_back(first(), by);
      for (PolicyGetter second : Policies()) {
        settings.emplace_back(first(), by);
        settings.back().Add({&second(), second().info().granularity});
      }
    }
  }
  return settings;
}

TEST(EverySetting, keeps_the_device_busy_while_a_queue_always_has_work) {
  int seed = 0;
  for (const PolicySetting& setting : SinglesAndPairs()) {
    std::mt19937 random(static_cast<unsigned>(++seed));
    auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<SimulatedQueue> queues(5);
    for (SimulatedQueue& queue : queues) {
      queue.hints = {.priority = below(4),
                     .utilization = 1 + below(100),
                     .deadline_us = below(2) == 0 ? NO_DEADLINE : 1000 * (1 + below(50)),
                     .laxity_us = below(2) == 0 ? NO_LAXITY : 1000 * (1 + below(50)),
                     .lax_priority = below(3),
                     .critical_priority = below(6),
                     .weight = 1 + below(400),
                     .guarantee_us = 1000 * below(3),
                     .period_us = 20'000,
                     .latency_target_us = 5000 * below(3)};
      queue.command = microseconds(50 * (1 + below(10)));
      queue.process = 1 + below(3);
      queue.commands = 1 + below(20);
      queue.period = milliseconds(10 + below(50));
    }
    queues[0].period = Duration::zero();
    queues[0].commands = 1;
    const SimulationResult result = Simulate(setting, queues, milliseconds(500));
    EXPECT_GE(result.busy, milliseconds(485)) << TextOf(setting) << ", seed " << seed;
  }
}

}  // namespace
}  // namespace xsched::sched
