#include "cli/demo/demo_page.h"

#include <fmt/format.h>

#include <vector>

#include "cli/page/figures.h"
#include "cli/page/html_page.h"
#include "cli/statistics.h"

namespace xsched::cli {
namespace {

std::string LatencyRows(std::span<const LatencySeries> series) {
  const double alone = series.empty() ? 0 : Summarize(series.front().milliseconds).p99;
  std::vector<std::vector<std::string>> rows;
  for (const LatencySeries& one : series) {
    const Summary times = Summarize(one.milliseconds);
    rows.push_back({one.name, std::to_string(one.milliseconds.size()), fmt::format("{:.2f}", times.p50),
                    fmt::format("{:.2f}", times.p99), fmt::format("{:.2f}", times.max),
                    alone > 0 ? fmt::format("{:.2f}", times.p99 / alone) : "–"});
  }
  return HtmlTable("Latency of the urgent task",
                   {"the urgent task", "requests", "p50, ms", "p99, ms", "maximum, ms", "p99 / alone"}, rows,
                   1);
}

}  // namespace

std::string DemoPage(std::span<const LatencySeries> series, const BusyRates& busy) {
  std::vector<Series> latencies;
  for (const LatencySeries& one : series) latencies.push_back({one.name, one.milliseconds});
  const std::string summary = fmt::format(
      "<p>An urgent task of 10 kernels, ten times a second, beside a program that keeps the device busy: "
      "without "
      "and with XSched. With XSched, the other keeps {:.0f} % of its throughput.</p>\n",
      busy.kept() * 100);
  return HtmlPage(
      "XSched: an urgent task beside a busy program",
      summary + LatencyRows(series) +
          HtmlTable("Throughput of the other program, hashcat", {"hashcat", "million candidates per second"},
                    {{"beside the urgent task, native", fmt::format("{:.2f}", busy.native / 1e6)},
                     {"beside the urgent task, XSched", fmt::format("{:.2f}", busy.scheduled / 1e6)}},
                    1) +
          "<h2>Latency of the urgent task</h2>\n" +
          DistributionFigure("How often each latency occurred", "ms", latencies) +
          SequenceFigure("Latency of each request", "ms", latencies));
}

}  // namespace xsched::cli
