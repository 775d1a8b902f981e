// What policies promise, on random loads in virtual time. Each seed is one load.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/testing/tries.h"
#include "sched/sim/simulator.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kLoads = Tries(60);

class Dice {
 public:
  explicit Dice(int seed) : random_(static_cast<unsigned>(seed)) {}
  int Between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

 private:
  std::mt19937 random_;
};

Hints RandomHints(Dice& dice) {
  return {.priority = dice.Between(-6, 6),
          .utilization = dice.Between(1, 100),
          .deadline_us = dice.Between(0, 1) == 0 ? NO_DEADLINE : dice.Between(1, 100) * 1000,
          .laxity_us = dice.Between(0, 1) == 0 ? NO_LAXITY : dice.Between(1, 50) * 1000,
          .lax_priority = dice.Between(-3, 3),
          .critical_priority = dice.Between(0, 6),
          .weight = dice.Between(1, 400),
          .guarantee_us = dice.Between(0, 1) * 1000,
          .period_us = 10'000,
          .latency_target_us = dice.Between(0, 1) * dice.Between(1, 40) * 1000};
}

SimulatedQueue RandomQueue(Dice& dice) {
  SimulatedQueue queue;
  queue.hints = RandomHints(dice);
  queue.command = microseconds(dice.Between(1, 10) * 50);
  queue.process = dice.Between(0, 3);
  if (dice.Between(0, 1) == 0) return queue;
  queue.commands = dice.Between(1, 20);
  queue.period = milliseconds(dice.Between(10, 60));
  return queue;
}

std::vector<SimulatedQueue> RandomQueues(Dice& dice) {
  std::vector<SimulatedQueue> queues(static_cast<size_t>(dice.Between(2, 7)));
  for (SimulatedQueue& queue : queues) queue = RandomQueue(dice);
  return queues;
}

class EveryPolicy : public testing::TestWithParam<PolicyGetter> {
 protected:
  const Policy& policy() const { return GetParam()(); }
};

TEST_P(EveryPolicy, keeps_the_device_busy_while_a_queue_always_has_work) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    std::vector<SimulatedQueue> queues = RandomQueues(dice);
    queues[0].period = Duration::zero();
    queues[0].commands = 1;
    const SimulationResult result = Simulate(policy(), queues, seconds(1));
    EXPECT_GE(InSeconds(result.busy), 0.97) << policy().info().name << ", seed " << seed;
  }
}

TEST_P(EveryPolicy, finishes_all_tasks_of_a_light_load_in_time) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    std::vector<SimulatedQueue> queues(5);
    for (SimulatedQueue& queue : queues) {
      queue = RandomQueue(dice);
      queue.command = microseconds(100);
      queue.commands = dice.Between(1, 10);
      queue.period = milliseconds(dice.Between(40, 80));
    }
    for (const SimulatedQueue& queue : Simulate(policy(), queues, seconds(1)).queues) {
      ASSERT_FALSE(queue.latencies.empty());
      // Five tasks of at most 1 ms, and pauses between queues.
      EXPECT_LE(*std::ranges::max_element(queue.latencies), milliseconds(9))
          << policy().info().name << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, EveryPolicy, testing::ValuesIn(Policies().begin(), Policies().end()),
                         [](const auto& tested) { return tested.param().info().name; });

// ---- shares ----

struct Shares {
  XPolicyType type;
  double (*weight)(const Hints& hints);
};

class SharingPolicy : public testing::TestWithParam<Shares> {
 protected:
  const Policy& policy() const { return *FindPolicy(GetParam().type); }
};

TEST_P(SharingPolicy, gives_busy_queues_their_shares_within_one_percent_in_a_second) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    std::vector<SimulatedQueue> queues(static_cast<size_t>(dice.Between(2, 5)));
    double total = 0;
    for (SimulatedQueue& queue : queues) {
      queue.hints = {.priority = dice.Between(-4, 4),
                     .utilization = dice.Between(10, 100),
                     .weight = dice.Between(20, 400)};
      queue.command = microseconds(20);  // a time slice ends with its last command
      queue.in_flight = 0;
      total += GetParam().weight(queue.hints);
    }
    const SchedulerConfig config{.timeslice = milliseconds(2)};
    const SimulationResult result = Simulate(policy(), queues, seconds(1), config);
    for (const SimulatedQueue& queue : result.queues) {
      EXPECT_NEAR(InSeconds(queue.device_time) / InSeconds(result.busy),
                  GetParam().weight(queue.hints) / total, 0.01)
          << policy().info().name << ", seed " << seed;
    }
  }
}

TEST_P(SharingPolicy, starves_no_queue) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    for (const SimulatedQueue& queue : Simulate(policy(), RandomQueues(dice), seconds(2)).queues) {
      EXPECT_GT(queue.device_time, Duration::zero()) << policy().info().name << ", seed " << seed;
    }
  }
}

double ByUtilization(const Hints& hints) { return hints.utilization; }
double ByPriority(const Hints& hints) { return std::pow(1.2, hints.priority); }
double ByWeight(const Hints& hints) { return hints.weight; }

INSTANTIATE_TEST_SUITE_P(Loads, SharingPolicy,
                         testing::Values(Shares{kPolicyUtilizationPartition, ByUtilization},
                                         Shares{kPolicyProcessUtilizationPartition, ByUtilization},
                                         Shares{kPolicyCompletelyFairScheduler, ByPriority},
                                         Shares{kPolicyEarliestEligibleVirtualDeadlineFirst, ByWeight}),
                         [](const auto& tested) { return PolicyName(tested.param.type); });

// ---- reservations ----

TEST(ReservationsOnLoads, guarantees_and_limits_hold_within_one_percent_in_a_second) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    std::vector<SimulatedQueue> queues(static_cast<size_t>(dice.Between(2, 5)));
    for (SimulatedQueue& queue : queues) {
      queue.command = microseconds(20);
      queue.in_flight = 0;
      queue.hints.weight = dice.Between(20, 400);
      queue.hints.period_us = dice.Between(1, 4) * 25'000;
      queue.hints.guarantee_us = queue.hints.period_us * dice.Between(0, 18) / 100;
      if (dice.Between(0, 1) == 0) queue.hints.limit_us = queue.hints.period_us * dice.Between(20, 40) / 100;
    }
    queues[0].hints.limit_us = 0;  // so the device has always work
    const SimulationResult result = Simulate(*FindPolicy(kPolicyReservation), queues, seconds(1));
    EXPECT_GE(InSeconds(result.busy), 0.97) << "seed " << seed;
    for (const SimulatedQueue& queue : result.queues) {
      const double share = InSeconds(queue.device_time) / InSeconds(result.busy);
      const auto period = static_cast<double>(queue.hints.period_us);
      EXPECT_GE(share, static_cast<double>(queue.hints.guarantee_us) / period - 0.01) << "seed " << seed;
      if (queue.hints.limit_us == 0) continue;
      EXPECT_LE(share, static_cast<double>(queue.hints.limit_us) / period + 0.01) << "seed " << seed;
    }
  }
}

TEST(ReservationsOnLoads, of_a_device_that_is_not_guaranteed_as_a_whole_starve_nobody) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    for (const SimulatedQueue& queue :
         Simulate(*FindPolicy(kPolicyReservation), RandomQueues(dice), seconds(2)).queues) {
      EXPECT_GT(queue.device_time, Duration::zero()) << "seed " << seed;
    }
  }
}

// ---- deadlines ----

TEST(KEarliestDeadlinesOnLoads, all_are_met_where_tasks_fill_85_percent_of_the_time) {
  for (int seed = 0; seed < kLoads; ++seed) {
    Dice dice(seed);
    std::vector<SimulatedQueue> queues(static_cast<size_t>(dice.Between(2, 6)));
    const double each = 0.85 / static_cast<double>(queues.size());
    for (SimulatedQueue& queue : queues) {
      queue.period = milliseconds(dice.Between(20, 100));
      queue.command = microseconds(100);
      queue.commands =
          std::max(1, static_cast<int>(each * InSeconds(queue.period) / InSeconds(queue.command)));
      queue.hints.deadline_us = queue.period / microseconds(1);
    }
    for (const SimulatedQueue& queue :
         Simulate(*FindPolicy(kPolicyKEarliestDeadlineFirst), queues, seconds(2)).queues) {
      EXPECT_LE(*std::ranges::max_element(queue.latencies), queue.period) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace xsched::sched
