// A load on one simple device, for the tests of policies: sim/simulation.h in a few words.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sched/core/scheduler.h"

namespace xsched::sched {

struct SimulatedQueue {
  Hints hints;
  Duration command{};  // length of each command
  int commands = 1;    // of each task
  Duration period{};   // from the arrival of one task to the next; zero: there is always work
  int in_flight = 1;   // commands that run on after a hold; 0: only the one that runs
  bool stuck = false;  // its commands never end
  int process = 0;     // queues with the same number belong to one process; 0: it has one of its own
  int tenant = 0;      // of its process; 0: none is known

  // Results.
  std::vector<Duration> latencies;  // of finished tasks; none if there is always work
  Duration device_time{};
};

struct SimulationResult {
  std::vector<SimulatedQueue> queues;
  Duration busy{};  // device time of all
};

// The device runs one command at a time, and serves the queues in turn if several may run.
SimulationResult Simulate(const PolicySetting& policy, std::vector<SimulatedQueue> queues, Duration length,
                          const SchedulerConfig& config = {},
                          const std::map<uint64_t, TenantShare>& tenants = {});

}  // namespace xsched::sched
