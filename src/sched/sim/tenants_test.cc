// Tenants: what their processes have of a device together. In virtual time.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "sched/core/policy_setting.h"
#include "sched/sim/simulator.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kLoads = 40;

SimulatedQueue BusyQueue(int process, int tenant) {
  SimulatedQueue queue;
  queue.command = microseconds(10);  // a time slice ends with the last command of each of its queues
  queue.in_flight = 0;
  queue.process = process;
  queue.tenant = tenant;
  return queue;
}

// The part of the device's time that each tenant has had.
std::map<int, double> SharesOf(const SimulationResult& result) {
  std::map<int, double> shares;
  for (const SimulatedQueue& queue : result.queues) {
    shares[queue.tenant] +=
        std::chrono::duration<double>(queue.device_time) / std::chrono::duration<double>(result.busy);
  }
  return shares;
}

PolicySetting SettingOf(const std::string& text) { return *ParsePolicySetting(text.c_str()); }

class SharesOfTenants : public testing::TestWithParam<const char*> {
 protected:
  PolicySetting setting() const { return SettingOf(GetParam()); }
};

TEST_P(SharesOfTenants, twenty_processes_of_one_tenant_get_what_one_of_another_gets) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1)};
  for (int process = 2; process <= 21; ++process) queues.push_back(BusyQueue(process, 2));
  const SchedulerConfig config{.timeslice = milliseconds(2)};
  const auto shares = SharesOf(Simulate(setting(), queues, seconds(1), config));
  EXPECT_NEAR(shares.at(1), 0.5, 0.01);
  EXPECT_NEAR(shares.at(2), 0.5, 0.01);
}

TEST_P(SharesOfTenants, are_in_proportion_to_their_weights_whatever_their_queues_ask_for) {
  for (int seed = 0; seed < kLoads; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    auto between = [&random](int low, int high) {
      return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    std::map<uint64_t, TenantShare> tenants;
    std::vector<SimulatedQueue> queues;
    double weights = 0;
    int process = 0;
    for (int tenant = 1; tenant <= between(2, 4); ++tenant) {
      weights += tenants[static_cast<uint64_t>(tenant)].weight = between(20, 400);
      for (int i = between(1, 4); i > 0; --i) {
        ++process;
        for (int j = between(1, 3); j > 0; --j) {
          queues.push_back(BusyQueue(process, tenant));
          queues.back().hints.weight = between(1, 1000);
          queues.back().hints.utilization = between(1, 100);
        }
      }
    }
    const SchedulerConfig config{.timeslice = milliseconds(2)};
    const auto shares = SharesOf(Simulate(setting(), queues, seconds(1), config, tenants));
    for (const auto& [tenant, share] : shares) {
      const double expected = tenants[static_cast<uint64_t>(tenant)].weight / weights;
      EXPECT_NEAR(share, expected, 0.02) << GetParam() << ", seed " << seed;
    }
  }
}

// Otherwise the watchdog takes those that do nothing for queues that wait for a held one, and lets all run.
TEST(Tenants, with_short_turns_let_all_of_their_queues_run) {
  constexpr int kQueues = 8;
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1)};
  for (int i = 0; i < kQueues; ++i) queues.push_back(BusyQueue(2, 2));
  const std::map<uint64_t, TenantShare> tenants = {{1, {.weight = 400}}, {2, {.weight = 20}}};
  const SchedulerConfig config{.timeslice = milliseconds(2)};
  const SimulationResult result = Simulate(SettingOf("UP:tenant"), queues, seconds(2), config, tenants);
  const double each = 20.0 / 420 / kQueues;
  for (int i = 1; i <= kQueues; ++i) {
    const std::chrono::duration<double> time = result.queues[static_cast<size_t>(i)].device_time;
    EXPECT_NEAR(time / result.busy, each, each / 10) << "queue " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SharesOfTenants,
                         testing::Values("EEVDF", "UP:tenant", "EEVDF:tenant", "EEVDF:tenant/EEVDF",
                                         "UP:tenant/UP:process", "RESERVE:tenant"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(Tenants, share_by_cfs_whatever_number_of_processes_they_have) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1)};
  for (int process = 2; process <= 9; ++process) queues.push_back(BusyQueue(process, 2));
  const auto shares = SharesOf(Simulate(SettingOf("CFS:tenant"), queues, seconds(1)));
  EXPECT_NEAR(shares.at(1), 0.5, 0.02);
}

TEST(Tenants, processes_of_one_share_what_it_has_by_their_weights) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1), BusyQueue(2, 2), BusyQueue(3, 2)};
  queues[1].hints.weight = 300;
  const SchedulerConfig config{.timeslice = milliseconds(2)};
  const SimulationResult result = Simulate(SettingOf("EEVDF"), queues, seconds(1), config);
  auto share = [&](size_t i) {
    return std::chrono::duration<double>(result.queues[i].device_time).count() /
           std::chrono::duration<double>(result.busy).count();
  };
  EXPECT_NEAR(share(0), 0.5, 0.01);
  EXPECT_NEAR(share(1), 0.375, 0.01);
  EXPECT_NEAR(share(2), 0.125, 0.01);
}

TEST(Tenants, what_one_leaves_unused_goes_to_the_others) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1), BusyQueue(2, 2)};
  queues[0].period = milliseconds(10);
  queues[0].commands = 100;  // 10 % of the time
  const auto shares = SharesOf(Simulate(SettingOf("EEVDF"), queues, seconds(1)));
  EXPECT_NEAR(shares.at(1), 0.1, 0.01);
  EXPECT_NEAR(shares.at(2), 0.9, 0.01);
}

TEST(Tenants, a_guarantee_and_a_limit_are_those_of_all_processes_together) {
  std::map<uint64_t, TenantShare> tenants;
  tenants[1] = {.weight = 100, .guarantee_us = 30'000, .period_us = 100'000};
  tenants[2] = {.weight = 10'000};
  tenants[3] = {.weight = 10'000, .period_us = 100'000, .limit_us = 10'000};
  std::vector<SimulatedQueue> queues;
  for (int process = 1; process <= 9; ++process) queues.push_back(BusyQueue(process, 1 + process % 3));
  const auto shares = SharesOf(Simulate(SettingOf("RESERVE:tenant"), queues, seconds(2), {}, tenants));
  EXPECT_GE(shares.at(1), 0.29);
  EXPECT_LE(shares.at(3), 0.11);
  EXPECT_GE(shares.at(3), 0.09);
}

TEST(Tenants, priorities_decide_within_each_of_them) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 1), BusyQueue(2, 2), BusyQueue(3, 2)};
  queues[1].hints.priority = 5;
  const SimulationResult result = Simulate(SettingOf("UP:tenant/HPF"), queues, seconds(1));
  EXPECT_EQ(result.queues[2].device_time, Duration::zero());
  EXPECT_NEAR(SharesOf(result).at(1), 0.5, 0.01);
}

// The decisions of a scheduler that knows of no tenants.
TEST(Tenants, that_are_unknown_change_nothing_of_what_processes_get) {
  std::vector<SimulatedQueue> queues = {BusyQueue(1, 0), BusyQueue(2, 0), BusyQueue(3, 0)};
  queues[0].hints.weight = 200;
  const auto without = Simulate(SettingOf("EEVDF"), queues, seconds(1));
  for (SimulatedQueue& queue : queues) queue.tenant = 7;
  const auto within_one = Simulate(SettingOf("EEVDF"), queues, seconds(1));
  for (size_t i = 0; i < queues.size(); ++i) {
    EXPECT_EQ(without.queues[i].device_time, within_one.queues[i].device_time);
    EXPECT_NEAR(std::chrono::duration<double>(without.queues[i].device_time).count(), i == 0 ? 0.5 : 0.25,
                0.01);
  }
}

// Two busy queues of two processes under a scheduler, asked for its decisions at each millisecond.
class ChangingTenants : public testing::Test {
 protected:
  ChangingTenants() {
    scheduler_.SetPolicy(SettingOf("UP:tenant"));
    for (uint64_t i = 1; i <= 3; ++i) {
      scheduler_.SetTenant(ProcessId{i}, TenantId{i == 1 ? 1u : 2u});
      scheduler_.AddQueue(QueueId{i}, ProcessId{i}, DeviceId{1}, {}, now_);
    }
  }
  // Their shares of this time.
  std::vector<double> RunFor(Duration time) {
    const std::vector<Duration> before = Services();
    const TimePoint from = now_;
    for (uint64_t n = 0; now_ < from + time; ++n) {
      now_ += microseconds(500);
      ++work_;
      for (uint64_t i = 1; i <= 3; ++i) scheduler_.Progress(QueueId{i}, work_ + 1, work_, now_);
      scheduler_.Decide(now_, sink_);
    }
    std::vector<double> shares;
    const std::vector<Duration> after = Services();
    for (size_t i = 0; i < after.size(); ++i)
      shares.push_back(std::chrono::duration<double>(after[i] - before[i]) /
                       std::chrono::duration<double>(time));
    return shares;
  }
  std::vector<Duration> Services() const {
    std::vector<Duration> services;
    for (uint64_t i = 1; i <= 3; ++i) services.push_back(scheduler_.Stats(QueueId{i}, now_)->service);
    return services;
  }

  TimePoint now_{seconds(10)};
  uint64_t work_ = 0;
  Scheduler scheduler_{{.timeslice = milliseconds(2)}};
  Recorder sink_;
};

TEST_F(ChangingTenants, a_process_that_changes_its_tenant_takes_nothing_with_it) {
  std::vector<double> shares = RunFor(seconds(1));
  EXPECT_NEAR(shares[0], 0.5, 0.02);
  scheduler_.SetTenant(ProcessId{2}, TenantId{3});
  shares = RunFor(seconds(1));
  for (double share : shares) EXPECT_NEAR(share, 1.0 / 3, 0.02);
}

// It had the virtual time of the former tenant, because both tenants had had as many decisions.
TEST_F(ChangingTenants, a_process_shares_with_the_others_of_its_new_tenant_at_once) {
  scheduler_.SetPolicy(SettingOf("EEVDF"));
  RunFor(seconds(10));
  scheduler_.SetTenant(ProcessId{2}, TenantId{1});
  std::vector<double> shares = RunFor(seconds(1));
  EXPECT_NEAR(shares[0], 0.25, 0.02);
  EXPECT_NEAR(shares[1], 0.25, 0.02);
  EXPECT_NEAR(shares[2], 0.5, 0.02);
  scheduler_.SetTenant(ProcessId{1}, TenantId{2});
  shares = RunFor(seconds(1));
  EXPECT_NEAR(shares[0], 0.25, 0.02);
  EXPECT_NEAR(shares[2], 0.25, 0.02);
}

TEST_F(ChangingTenants, another_weight_counts_from_then_on) {
  RunFor(seconds(1));
  scheduler_.SetTenantShare(TenantId{1}, {.weight = 300});
  EXPECT_NEAR(RunFor(seconds(1))[0], 0.75, 0.02);
  scheduler_.SetTenantShare(TenantId{1}, {});
  EXPECT_NEAR(RunFor(seconds(1))[0], 0.5, 0.02);
}

}  // namespace
}  // namespace xsched::sched
