#include "cli/simulate/page.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/page/figures.h"
#include "cli/page/html_page.h"

namespace xsched::cli {
namespace {

std::string Figures(std::span<const Outcome> outcomes, size_t queue) {
  std::vector<Spread> latencies;
  std::vector<Bars> shares;
  for (const Outcome& outcome : outcomes) {
    const QueueOutcome& row = outcome.queues[queue];
    if (row.tasks > 0) latencies.push_back({outcome.scheme.name, row.latencies, row.p50_ms, row.p99_ms});
    shares.push_back({outcome.scheme.name, {{row.share, fmt::format("{:.1f} %", row.share * 100)}}});
  }
  const std::string& name = outcomes.front().queues[queue].name;
  std::string figures;
  if (!latencies.empty()) figures += SpreadFigure(name + ": how often each latency occurred", latencies);
  return figures + BarFigure(name + ": share of the device's time", shares);
}

std::string Table(std::span<const Outcome> outcomes) {
  std::vector<std::vector<std::string>> rows;
  for (const Outcome& outcome : outcomes) {
    for (const QueueOutcome& queue : outcome.queues) {
      const auto time = [&](double ms) { return queue.tasks > 0 ? fmt::format("{:.3f}", ms) : "–"; };
      rows.push_back(
          {outcome.scheme.name, queue.name, time(queue.p50_ms), time(queue.p99_ms), time(queue.max_ms),
           std::to_string(queue.tasks), queue.has_deadline ? std::to_string(queue.missed) : "–",
           fmt::format("{:.1f}", queue.commands_per_second), fmt::format("{:.1f}", queue.share * 100)});
    }
  }
  return HtmlTable(
      "All figures",
      {"policy", "queue", "p50, ms", "p99, ms", "maximum, ms", "tasks", "missed", "commands/s", "time, %"},
      rows, 2);
}

}  // namespace

std::string Page(std::span<const Outcome> outcomes) {
  std::string figures;
  for (size_t queue = 0; !outcomes.empty() && queue < outcomes.front().queues.size(); ++queue)
    figures += Figures(outcomes, queue);
  return HtmlPage("XSched: policies compared", "<p>Predictions of <code>xsched simulate</code>.</p>\n" +
                                                   Table(outcomes) + "<h2>Queues</h2>\n" + figures);
}

}  // namespace xsched::cli
