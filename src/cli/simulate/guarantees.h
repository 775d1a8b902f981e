// What the hints of a load's queues guarantee of its devices together.
#pragma once

#include <cstddef>
#include <vector>

#include "sched/sim/load.h"

namespace xsched::cli {

// Of one device. A process has the largest guarantee of its queues.
struct Guaranteed {
  size_t device = 0;
  double part = 0;  // of its time

  // A server refuses hints with which this would not be so.
  bool CanBeKept() const { return part <= 1 + 1e-9; }
};

// `hints` of each queue. The device of which most is guaranteed.
Guaranteed MostGuaranteed(const sched::sim::Load& load, const std::vector<sched::Hints>& hints);

}  // namespace xsched::cli
