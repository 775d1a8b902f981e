// Plots for pages, as figures with SVG. Each says in words what it shows; tables have the figures. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/distribution.h"

namespace xsched::cli {

struct Bar {
  double value;
  std::string text;
};
struct Bars {
  std::string name;
  std::vector<Bar> bars;
};
// One row of bars for each name, the longest as long as there is room.
std::string BarFigure(const std::string& title, const std::vector<Bars>& rows);

struct Series {
  std::string name;
  std::vector<double> values;
};
// How often each value occurred: one histogram below another, from 0 on a common scale, with p50 and p99.
std::string DistributionFigure(const std::string& title, const std::string& unit,
                               std::span<const Series> series);
struct Spread {
  std::string name;
  Distribution times;
  double p50_ms;  // exactly, as elsewhere on the page
  double p99_ms;
};
// How often each time occurred: one row of a histogram for each name, with p50 and p99, on a common
// logarithmic scale. For more rows and larger differences than a DistributionFigure can show.
std::string SpreadFigure(const std::string& title, std::span<const Spread> rows);
// Each value, in the order in which they came.
std::string SequenceFigure(const std::string& title, const std::string& unit, std::span<const Series> series);

}  // namespace xsched::cli
