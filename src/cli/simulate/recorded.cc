#include "cli/simulate/recorded.h"

#include <algorithm>

namespace xsched::cli {

void EstimateUnseen(std::vector<RecordedBurst>& bursts) {
  uint64_t commands = 0;
  Duration device{};
  for (const RecordedBurst& burst : bursts) {
    if (burst.unseen) continue;
    commands += burst.commands;
    device += burst.device;
  }
  if (commands == 0) return;
  const double length = static_cast<double>(device.count()) / static_cast<double>(commands);
  for (RecordedBurst& burst : bursts) {
    if (!burst.unseen) continue;
    burst.device = Duration(static_cast<int64_t>(length * static_cast<double>(burst.commands)));
    burst.span = burst.device;
  }
}

Outcome RecordedOutcome(const sched::sim::Load& load, const std::vector<std::vector<RecordedBurst>>& bursts,
                        Duration warm_up, bool distributions) {
  sched::sim::Result result;
  result.length = load.length - warm_up;
  for (size_t i = 0; i < load.queues.size(); ++i) {
    sched::sim::QueueResult& queue = result.queues.emplace_back();
    for (const RecordedBurst& burst : bursts[i]) {
      const Duration end = burst.at + burst.span;
      const Deadline deadline = load.queues[i].HintsAt(burst.at).deadline_us;
      if (end <= warm_up || burst.at >= load.length) continue;
      if (end > load.length) {
        queue.AddUnended(load.length - burst.at, deadline);
        continue;
      }
      queue.commands += burst.commands;
      queue.device_time += burst.device;
      if (burst.at < warm_up) continue;
      queue.AddEnded(burst.span, deadline);
    }
  }
  return OutcomeOf(load, {.name = "recorded"}, result, distributions);
}

}  // namespace xsched::cli
