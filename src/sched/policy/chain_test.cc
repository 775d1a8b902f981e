// Chains of policies, on loads in virtual time.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "sched/sim/simulator.h"

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
  auto seconds_of = [&](int i) {
    return std::chrono::duration<double>(result.queues[static_cast<size_t>(i)].device_time).count();
  };
  EXPECT_NEAR(seconds_of(1) / (seconds_of(1) + seconds_of(2)), 0.75, 0.01);
  EXPECT_NEAR(seconds_of(0), 0.3, 0.01);
  for (Duration latency : result.queues[0].latencies) EXPECT_LE(latency, microseconds(3200));
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
