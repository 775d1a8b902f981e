// Predicts what a policy makes of a load: programs and devices in virtual time, under the real scheduler or
// without one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/core/scheduler.h"
#include "sched/sim/command_device.h"
#include "sched/sim/hint_overrides.h"
#include "sched/sim/load.h"

namespace xsched::sched::sim {

struct Conditions {
  std::optional<PolicySetting> policy;  // none: no scheduler
  Order order = Order::kInTurn;         // without a scheduler
  SchedulerConfig config;
  std::vector<HintOverrides> hints;  // of each queue; empty: as in the load
  Duration warm_up{};                // what comes or ends in this time does not count
};

// What became of one queue, after the warm-up.
struct QueueResult {
  std::vector<Duration> latencies;  // of finished tasks, in the order of their ends
  std::vector<Duration> ages;       // of tasks that have not ended: their latencies are at least so long
  uint64_t missed = 0;              // of all these: later than the deadline that the queue had when they came
  uint64_t commands = 0;
  Duration device_time{};

  void AddEnded(Duration latency, Deadline deadline) {
    latencies.push_back(latency);
    missed += static_cast<uint64_t>(IsMissed(latency, deadline));
  }
  void AddUnended(Duration age, Deadline deadline) {
    ages.push_back(age);
    missed += static_cast<uint64_t>(IsMissed(age, deadline));
  }

 private:
  static bool IsMissed(Duration time, Deadline deadline) {
    return deadline >= 0 && time > std::chrono::microseconds(deadline);
  }
};

struct Result {
  std::vector<QueueResult> queues;
  Duration length{};  // without the warm-up
  uint64_t events = 0;
};

// REQUIRES: the load's numbers of devices, processes and queues are valid.
Result Simulate(const Load& load, const Conditions& conditions);

}  // namespace xsched::sched::sim
