#include "cli/simulate/page.h"

#include <fmt/format.h>

#include <algorithm>

namespace xsched::cli {
namespace {

constexpr double kLeft = 230;  // of the bars; the names are before them
constexpr double kBars = 400;
constexpr double kRow = 38;
constexpr double kBar = 14;
constexpr double kWidth = kLeft + kBars + 90;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fff; --line: #ccc; --one: #0b6e99; --two: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #161616; --line: #444; --one: #4fb3d9;
  --two: #f08a4b; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em;
  color: var(--text); background: var(--back); }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid var(--line); padding: .3em .7em;
  text-align: right; } td:first-child, th:first-child, td:nth-child(2), th:nth-child(2) { text-align: left; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
figure { margin: 1.5em 0; } figcaption { font-weight: 600; }
.one { fill: var(--one); } .two { fill: var(--two); }
)";

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

struct Bar {
  const char* style;
  double value;
  std::string text;
};
struct Bars {
  std::string name;
  std::vector<Bar> bars;
};

// One row of bars for each scheme, the longest as long as there is room.
std::string Figure(const std::string& title, const std::vector<Bars>& rows) {
  double most = 0;
  for (const Bars& row : rows) {
    for (const Bar& bar : row.bars) most = std::max(most, bar.value);
  }
  std::string svg = fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" width=\"{1}\" role=\"img\" "
      "aria-label=\"{0}; the table below has the figures\">\n",
      Escaped(title), kWidth, kRow * static_cast<double>(rows.size()));
  double y = 4;
  for (const Bars& row : rows) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y + kBar,
                       Escaped(row.name));
    double top = y;
    for (const Bar& bar : row.bars) {
      const double length = most > 0 ? kBars * bar.value / most : 0;
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/><text x=\"{:.1f}\" "
          "y=\"{:.1f}\">{}</text>\n",
          bar.style, kLeft, top, std::max(length, 1.0), kBar, kLeft + length + 6, top + kBar - 3,
          Escaped(bar.text));
      top += kBar + 2;
    }
    y += kRow;
  }
  return svg + "</svg></figure>\n";
}

std::string Figures(std::span<const Outcome> outcomes, size_t queue) {
  std::vector<Bars> latencies;
  std::vector<Bars> shares;
  bool has_tasks = false;
  for (const Outcome& outcome : outcomes) {
    const QueueOutcome& row = outcome.queues[queue];
    has_tasks |= row.tasks > 0;
    latencies.push_back({outcome.scheme.name,
                         {{"one", row.p50_ms, fmt::format("p50 {:.3g} ms", row.p50_ms)},
                          {"two", row.p99_ms, fmt::format("p99 {:.3g} ms", row.p99_ms)}}});
    shares.push_back({outcome.scheme.name, {{"one", row.share, fmt::format("{:.1f} %", row.share * 100)}}});
  }
  const std::string& name = outcomes.front().queues[queue].name;
  std::string figures;
  if (has_tasks) figures += Figure(name + ": latency", latencies);
  return figures + Figure(name + ": share of the device's time", shares);
}

std::string Table(std::span<const Outcome> outcomes) {
  std::string rows;
  for (const Outcome& outcome : outcomes) {
    for (const QueueOutcome& queue : outcome.queues) {
      const auto time = [&](double ms) { return queue.tasks > 0 ? fmt::format("{:.3f}", ms) : "–"; };
      rows += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{:.1f}</td><td>{:.1f}</td></tr>\n",
          Escaped(outcome.scheme.name), Escaped(queue.name), time(queue.p50_ms), time(queue.p99_ms),
          time(queue.max_ms), queue.tasks, queue.has_deadline ? std::to_string(queue.missed) : "–",
          queue.commands_per_second, queue.share * 100);
    }
  }
  return "<table><tr><th>policy</th><th>queue</th><th>p50, ms</th><th>p99, ms</th><th>maximum, ms</th>"
         "<th>tasks</th><th>missed</th><th>commands/s</th><th>time, %</th></tr>\n" +
         rows + "</table>\n";
}

}  // namespace

std::string Page(std::span<const Outcome> outcomes) {
  std::string figures;
  for (size_t queue = 0; !outcomes.empty() && queue < outcomes.front().queues.size(); ++queue)
    figures += Figures(outcomes, queue);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>XSched: policies "
      "compared</title><style>{}</style></head><body>\n"
      "<h1>XSched: policies compared</h1>\n<p>Predictions of <code>xsched simulate</code>.</p>\n{}{}"
      "</body></html>\n",
      kStyle, figures, Table(outcomes));
}

}  // namespace xsched::cli
