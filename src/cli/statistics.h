// Statistics of a list of measurements. Pure.
#pragma once

#include <vector>

namespace xsched::cli {

// The smallest value that at least `fraction` (0 … 1) of the values do not exceed; 0 for an empty list.
double Percentile(std::vector<double> values, double fraction);

struct Summary {
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};
Summary Summarize(std::vector<double> values);

// How many values are in each of `bins` equal parts of [low, high]. Values outside count in the outermost
// parts.
std::vector<int> Histogram(const std::vector<double>& values, double low, double high, int bins);

}  // namespace xsched::cli
