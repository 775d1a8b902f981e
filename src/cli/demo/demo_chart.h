// The demo's result as a table and a chart. Pure.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct LatencySeries {
  std::string name;
  std::vector<double> milliseconds;
};

// A table of p50, p99 and maximum, and the p99 as a multiple of the first series' p99.
std::string LatencyTable(const std::vector<LatencySeries>& series);

// One histogram per series, as a line of blocks, on a common scale. `ascii`: for terminals without Unicode.
std::string LatencyChart(const std::vector<LatencySeries>& series, bool ascii);

}  // namespace xsched::cli
