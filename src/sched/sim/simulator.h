// A device with preemption level 1 and its queues, in virtual time, under the real scheduler: for trying
// policies, and for tests that need no clock. Not for foreign processes.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/core/scheduler.h"

namespace xsched::sched {

struct SimulatedQueue {
  Hints hints;
  Duration command{};  // length of each command
  int commands = 1;    // of a task
  Duration period{};   // a task arrives every so often; zero: there is always work
  int in_flight = 1;   // commands that run on after a hold
  bool stuck = false;  // its commands never end

  // Results.
  std::vector<Duration> latencies;  // of finished tasks
  Duration device_time{};
};

struct SimulationResult {
  std::vector<SimulatedQueue> queues;
  Duration busy{};  // device time of all
};

// One device, one command at a time, queues served in turn when several may run.
SimulationResult Simulate(const Policy& policy, std::vector<SimulatedQueue> queues, Duration length,
                          const SchedulerConfig& config = {});

}  // namespace xsched::sched
