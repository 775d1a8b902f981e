// The times at which the tasks of a generated load come. Pure: the same seed gives the same times everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace xsched::cli {

struct Arrivals {
  Duration from{};
  Duration until{};
  Duration period{};     // > 0
  bool poisson = false;  // `period` apart on average, and independent of each other
  Duration jitter{};     // each comes up to so much later, if that is before `until`; not with `poisson`
  uint64_t seed = 1;
};

std::vector<Duration> TimesOf(const Arrivals& arrivals);

}  // namespace xsched::cli
