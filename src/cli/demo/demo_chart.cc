#include "cli/demo/demo_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shades.h"
#include "cli/statistics.h"

namespace xsched::cli {
namespace {

constexpr int kBins = 60;

}  // namespace

std::string LatencyTable(const std::vector<LatencySeries>& series) {
  std::string text = fmt::format("{:<28} {:>9} {:>9} {:>9} {:>12}\n", "latency of the urgent task", "p50 ms",
                                 "p99 ms", "max ms", "p99 / alone");
  double alone = series.empty() ? 0 : Summarize(series.front().milliseconds).p99;
  for (const LatencySeries& entry : series) {
    Summary summary = Summarize(entry.milliseconds);
    text += fmt::format("{:<28} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.2f}x\n", entry.name, summary.p50,
                        summary.p99, summary.max, alone > 0 ? summary.p99 / alone : 0);
  }
  return text;
}

std::string LatencyChart(const std::vector<LatencySeries>& series, bool ascii) {
  double high = 0;
  for (const LatencySeries& entry : series) high = std::max(high, Percentile(entry.milliseconds, 1.0));
  std::string text = fmt::format("how often each latency occurred, 0 to {:.1f} ms\n", high);
  for (const LatencySeries& entry : series) {
    std::vector<int> counts = Histogram(entry.milliseconds, 0, high, kBins);
    int tallest = std::max(1, *std::max_element(counts.begin(), counts.end()));
    text += fmt::format("{:<28} |", entry.name);
    for (int count : counts) text += ShadeOf(static_cast<double>(count) / tallest, ascii);
    text += "|\n";
  }
  return text;
}

}  // namespace xsched::cli
