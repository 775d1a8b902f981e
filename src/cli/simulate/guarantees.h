// What the hints of a load's queues guarantee of its devices together.
#pragma once

#include <cstddef>
#include <vector>

#include "sched/sim/hint_overrides.h"
#include "sched/sim/load.h"

namespace xsched::cli {

// Of one device. A process has the largest guarantee of the queues that it has at a time.
struct Guaranteed {
  size_t device = 0;
  double part = 0;  // of its time
  Duration at{};    // from then on

  // A server refuses hints with which this would not be so.
  bool CanBeKept() const { return part <= 1 + 1e-9; }
};

// The device of which most is guaranteed at any time, or the first of which more is than can be kept.
// `overrides` of each queue; empty: as in the load.
Guaranteed MostGuaranteed(const sched::sim::Load& load,
                          const std::vector<sched::sim::HintOverrides>& overrides);

}  // namespace xsched::cli
