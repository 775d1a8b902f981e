// The demo's result for the eye. Pure.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct LatencySeries {
  std::string name;
  std::vector<double> milliseconds;
};

// A table of p50, p99 and maximum, with factors of the first series' p99.
std::string LatencyTable(const std::vector<LatencySeries>& series);

// One histogram per series on a common scale, a line of blocks each. `ascii`: for terminals without Unicode.
std::string LatencyChart(const std::vector<LatencySeries>& series, bool ascii);

}  // namespace xsched::cli
