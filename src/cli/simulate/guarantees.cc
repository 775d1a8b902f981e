#include "cli/simulate/guarantees.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sched/core/reservation.h"

namespace xsched::cli {
namespace {

// From a time on, a queue has another guarantee than before.
struct GuaranteeChange {
  Duration at;
  size_t queue;
  double guarantee;
};

// In the order of time. Those of a queue that is gone are 0.
std::vector<GuaranteeChange> GuaranteeChanges(const sched::sim::Load& load,
                                              const std::vector<sched::sim::HintOverrides>& overrides) {
  std::vector<GuaranteeChange> changes;
  for (size_t i = 0; i < load.queues.size(); ++i) {
    const sched::sim::QueueLoad& queue = load.queues[i];
    double before = 0;
    const auto add = [&](Duration at, double guarantee) {
      if (guarantee != before) changes.push_back({at, i, guarantee});
      before = guarantee;
    };
    const auto guarantee_of = [&](const sched::Hints& hints) {
      return sched::GuaranteeOf(overrides.empty() ? hints : overrides[i].Over(hints));
    };
    add(queue.from, guarantee_of(queue.hints));
    for (const sched::sim::HintChange& change : queue.changes) add(change.at, guarantee_of(change.hints));
    if (queue.gone) add(*queue.gone, 0);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& one, const auto& other) { return one.at < other.at; });
  return changes;
}

}  // namespace

Guaranteed MostGuaranteed(const sched::sim::Load& load,
                          const std::vector<sched::sim::HintOverrides>& overrides) {
  std::vector<double> of_queues(load.queues.size());
  std::map<std::pair<int, int>, std::multiset<double>> of_processes;  // on each device: those of its queues
  std::vector<double> of_devices(load.devices.size());
  const auto largest = [](const std::multiset<double>& guarantees) {
    return guarantees.empty() ? 0 : *guarantees.rbegin();
  };
  Guaranteed most;
  const std::vector<GuaranteeChange> changes = GuaranteeChanges(load, overrides);
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    const sched::sim::QueueLoad& queue = load.queues[change->queue];
    std::multiset<double>& of_process = of_processes[{queue.device, queue.process}];
    double& of_queue = of_queues[change->queue];
    const double before = largest(of_process);
    if (of_queue > 0) of_process.erase(of_process.find(of_queue));
    of_queue = change->guarantee;
    if (of_queue > 0) of_process.insert(of_queue);
    of_devices[static_cast<size_t>(queue.device)] += largest(of_process) - before;
    if (std::next(change) != changes.end() && std::next(change)->at == change->at) continue;
    const auto device = std::max_element(of_devices.begin(), of_devices.end());
    if (*device > most.part) most = {static_cast<size_t>(device - of_devices.begin()), *device, change->at};
    if (!most.CanBeKept()) break;
  }
  return most;
}

}  // namespace xsched::cli
