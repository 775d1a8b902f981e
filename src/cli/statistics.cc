#include "cli/statistics.h"

#include <algorithm>
#include <cmath>

namespace xsched::cli {

namespace {

// Changes the order of the values.
double PercentileIn(std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  size_t index = std::clamp<size_t>(rank, 1, values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

}  // namespace

double Percentile(std::vector<double> values, double fraction) { return PercentileIn(values, fraction); }

Summary Summarize(std::vector<double> values) {
  return {PercentileIn(values, 0.50), PercentileIn(values, 0.99), PercentileIn(values, 1.0)};
}

std::vector<int> Histogram(const std::vector<double>& values, double low, double high, int bins) {
  std::vector<int> counts(static_cast<size_t>(bins), 0);
  if (high <= low) return counts;
  for (double value : values) {
    double place = (value - low) / (high - low) * bins;
    int bin = static_cast<int>(std::clamp(place, 0.0, static_cast<double>(bins - 1)));
    ++counts[static_cast<size_t>(bin)];
  }
  return counts;
}

}  // namespace xsched::cli
