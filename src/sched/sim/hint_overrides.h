// Hints that a queue of a simulation has in place of the load's, whenever these change: what a search tries.
#pragma once

#include <optional>

#include "sched/core/types.h"

namespace xsched::sched::sim {

// Each as in Hints; none: as the load says.
struct HintOverrides {
  std::optional<Priority> priority;
  std::optional<Utilization> utilization;
  std::optional<Deadline> deadline_us;
  std::optional<Laxity> laxity_us;
  std::optional<Priority> lax_priority;
  std::optional<Priority> critical_priority;
  std::optional<Weight> weight;
  std::optional<int64_t> guarantee_us;
  std::optional<int64_t> period_us;
  std::optional<int64_t> limit_us;
  std::optional<int64_t> burst_us;
  std::optional<LatencyTarget> latency_target_us;

  // What counts in place of `hints`.
  Hints Over(Hints hints) const {
    const auto replace = [](auto& hint, const auto& with) { hint = with.value_or(hint); };
    replace(hints.priority, priority);
    replace(hints.utilization, utilization);
    replace(hints.deadline_us, deadline_us);
    replace(hints.laxity_us, laxity_us);
    replace(hints.lax_priority, lax_priority);
    replace(hints.critical_priority, critical_priority);
    replace(hints.weight, weight);
    replace(hints.guarantee_us, guarantee_us);
    replace(hints.period_us, period_us);
    replace(hints.limit_us, limit_us);
    replace(hints.burst_us, burst_us);
    replace(hints.latency_target_us, latency_target_us);
    return hints;
  }
};

}  // namespace xsched::sched::sim
