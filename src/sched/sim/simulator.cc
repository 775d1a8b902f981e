#include "sched/sim/simulator.h"

#include <algorithm>
#include <map>

#include "sched/sim/simulation.h"

namespace xsched::sched {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

// Queues that stop at once have a gate at each command; then no other has more than one in flight.
sim::DeviceParameters DeviceOf(const std::vector<SimulatedQueue>& queues) {
  sim::DeviceParameters device;
  device.preempt_latency = kLong;
  for (const SimulatedQueue& queue : queues) {
    device.in_flight = std::max(device.in_flight, queue.in_flight);
    if (queue.in_flight == 0) device.preempt_latency = Duration::zero();
  }
  return device;
}

sim::QueueLoad LoadOf(const SimulatedQueue& queue, Duration length) {
  sim::QueueLoad load;
  load.hints = queue.hints;
  load.level = queue.in_flight == 0 ? 2 : 1;
  sim::Task task;
  task.command = queue.command;
  task.commands = static_cast<uint64_t>(queue.commands);
  if (queue.stuck) task.waits_for = sim::kForEver;
  if (queue.period == Duration::zero()) {
    task.commands = sim::kWithoutEnd;
    task.until = length;
    load.tasks = {task};
    return load;
  }
  for (; task.at < length; task.at += queue.period) load.tasks.push_back(task);
  return load;
}

}  // namespace

SimulationResult Simulate(const PolicySetting& policy, std::vector<SimulatedQueue> queues, Duration length,
                          const SchedulerConfig& config, const std::map<uint64_t, TenantShare>& tenants) {
  sim::Load load;
  load.length = length;
  load.tenants = tenants;
  load.devices = {DeviceOf(queues)};
  std::map<int, int> shared;  // processes that have several queues
  for (const SimulatedQueue& queue : queues) {
    sim::QueueLoad next = LoadOf(queue, length);
    const auto own = static_cast<int>(load.processes.size());
    next.process = queue.process == 0 ? own : shared.try_emplace(queue.process, own).first->second;
    if (next.process == own)
      load.processes.push_back({.name = "", .tenant = static_cast<uint64_t>(queue.tenant)});
    load.queues.push_back(std::move(next));
  }
  sim::Conditions conditions;
  conditions.policy = policy;
  conditions.config = config;
  sim::Result outcome = sim::Simulate(load, conditions);
  SimulationResult result{std::move(queues), {}};
  for (size_t i = 0; i < result.queues.size(); ++i) {
    result.queues[i].latencies = std::move(outcome.queues[i].latencies);
    result.queues[i].device_time = outcome.queues[i].device_time;
    result.busy += outcome.queues[i].device_time;
  }
  return result;
}

}  // namespace xsched::sched
