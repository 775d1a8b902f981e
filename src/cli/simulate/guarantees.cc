#include "cli/simulate/guarantees.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sched/core/reservation.h"

namespace xsched::cli {

Guaranteed MostGuaranteed(const sched::sim::Load& load, const std::vector<sched::Hints>& hints) {
  std::map<std::pair<int, int>, double> of_processes;  // on each device
  for (size_t i = 0; i < hints.size(); ++i) {
    double& guarantee = of_processes[{load.queues[i].device, load.queues[i].process}];
    guarantee = std::max(guarantee, sched::GuaranteeOf(hints[i]));
  }
  std::map<int, double> of_devices;
  for (const auto& [where, guarantee] : of_processes) of_devices[where.first] += guarantee;
  Guaranteed most;
  for (const auto& [device, part] : of_devices) {
    if (part > most.part) most = {static_cast<size_t>(device), part};
  }
  return most;
}

}  // namespace xsched::cli
