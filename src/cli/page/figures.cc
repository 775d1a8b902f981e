#include "cli/page/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "cli/page/html_page.h"
#include "cli/statistics.h"

namespace xsched::cli {
namespace {

constexpr double kLeft = 230;  // of the plots; the names are before them
constexpr double kPlot = 400;
constexpr double kRight = 100;
constexpr double kWidth = kLeft + kPlot + kRight;
constexpr double kBar = 14;
constexpr double kBetweenRows = 8;  // of bars
constexpr double kPanel = 96;       // of a series
constexpr double kPanelPlot = 72;
constexpr double kRow = 30;  // of a spread
constexpr double kRowPlot = 22;
constexpr double kAxis = 34;
constexpr double kBins = 60;
constexpr int kTicks = 5;

std::string Svg(const std::string& title, const std::string& description, double height,
                const std::string& content) {
  return fmt::format(
      "<figure><figcaption>{0}</figcaption>\n<svg viewBox=\"0 0 {1} {2}\" width=\"{1}\" role=\"img\">"
      "<title>{0}</title><desc>{3}</desc>\n{4}</svg></figure>\n",
      Escaped(title), kWidth, height, Escaped(description), content);
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     Escaped(text));
}

std::string StraightLine(const char* style, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
                     x1, y1, x2, y2);
}

// A round number, of which a few make `most`.
double StepOf(double most) {
  if (!(most > 0)) return 1;
  const double unit = std::pow(10, std::floor(std::log10(most / kTicks)));
  for (double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (unit * factor * kTicks >= most * 0.999) return unit * factor;
  }
  return unit * 10;
}

double MostOf(std::span<const Series> series) {
  double most = 0;
  for (const Series& one : series) most = std::max(most, Percentile(one.values, 1.0));
  return most;
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string SummaryText(const Series& series, const std::string& unit) {
  const Summary summary = Summarize(series.values);
  return fmt::format("{}: {} values, p50 {:.3g} {}, p99 {:.3g} {}, longest {:.3g} {}. ", series.name,
                     series.values.size(), summary.p50, unit, summary.p99, unit, summary.max, unit);
}

// One panel for each series, with its name. `panel` draws it above the line y = `bottom`.
using Panel = std::function<std::string(const Series&, size_t index, double bottom)>;
std::string Panels(const std::string& title, const std::string& unit, std::span<const Series> series,
                   double& y, const Panel& panel, std::string& description) {
  std::string content;
  description = title + ". ";
  y = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    const double bottom = y + kPanel - (kPanel - kPanelPlot) / 4;
    content += Text(kLeft - 8, bottom - kPanelPlot / 2, "end", series[i].name);
    content += panel(series[i], i, bottom);
    content += StraightLine("grid", kLeft, bottom, kLeft + kPlot, bottom);
    description += SummaryText(series[i], unit);
    y += kPanel;
  }
  return content;
}

std::string Color(size_t index) { return fmt::format("c{}", index % 6); }

// 1, 2 and 5 times the powers of ten: milliseconds.
const double kRoundFactors[] = {1, 2, 5};

// The ends of a logarithmic axis, in milliseconds.
struct LogAxis {
  double low;
  double high;

  double PlaceOf(double ms) const { return kLeft + kPlot * std::log(ms / low) / std::log(high / low); }
};

double Milliseconds(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }
Duration FromMilliseconds(double ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

LogAxis AxisOf(std::span<const Spread> rows) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const Spread& row : rows) {
    if (row.times.count() == 0) continue;
    least = std::min(least, Milliseconds(row.times.Percentile(0)));
    most = std::max(most, Milliseconds(row.times.largest()));
  }
  if (!(most > 0)) return {1, 10};
  const auto power = [](double value) { return std::pow(10, std::floor(std::log10(value))); };
  least = std::max(least, 1e-6);
  LogAxis axis{power(least), power(most) * 10};
  for (double factor : kRoundFactors) {
    if (power(least) * factor <= least) axis.low = power(least) * factor;
  }
  for (double factor : {5, 2, 1}) {
    if (power(most) * factor >= most) axis.high = power(most) * factor;
  }
  return axis.low < axis.high ? axis : LogAxis{axis.low, axis.low * 10};
}

std::string LogTicks(const LogAxis& axis, double y) {
  std::string ticks;
  // Between so many powers of ten there is room for the powers alone.
  const bool powers_alone = axis.high / axis.low > 2000;
  for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high * 1.001;
       power *= 10) {
    for (double factor : kRoundFactors) {
      const double value = power * factor;
      if (value < axis.low * 0.999 || value > axis.high * 1.001 || (powers_alone && factor != 1)) continue;
      ticks += StraightLine("grid", axis.PlaceOf(value), 0, axis.PlaceOf(value), y);
      ticks += Text(axis.PlaceOf(value), y + 14, "middle", Number(value));
    }
  }
  return ticks +
         Text(kLeft + kPlot / 2, y + 30, "middle", "ms, each step the same factor; lines: p50 and p99");
}

std::string SpreadRow(const Spread& row, size_t index, const LogAxis& axis, double bottom) {
  const std::vector<uint64_t> counts = row.times.CountsBetween(
      FromMilliseconds(axis.low), FromMilliseconds(axis.high), static_cast<size_t>(kBins));
  const auto tallest = static_cast<double>(std::max<uint64_t>(1, std::ranges::max(counts)));
  std::string bars;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    // What occurred at all is visible.
    const double height = std::max(1.5, kRowPlot * static_cast<double>(counts[i]) / tallest);
    bars += fmt::format(
        "<rect class=\"{} fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        Color(index), kLeft + kPlot * static_cast<double>(i) / kBins, bottom - height, kPlot / kBins - 0.5,
        height);
  }
  for (double ms : {row.p50_ms, row.p99_ms}) {
    const double x = axis.PlaceOf(std::max(ms, axis.low));
    bars += StraightLine("mark", x, bottom - kRowPlot - 2, x, bottom);
  }
  return bars;
}

// A line at the percentile, with its name at this side of it.
std::string Mark(const Series& series, double fraction, const char* name, const char* anchor, double most,
                 double bottom) {
  if (series.values.empty()) return "";
  const double x = kLeft + kPlot * Percentile(series.values, fraction) / most;
  const double top = bottom - kPanelPlot - 10;
  const double beside = *anchor == 'e' ? -3 : 3;
  return StraightLine("mark", x, top, x, bottom) + Text(x + beside, top + 8, anchor, name);
}

}  // namespace

std::string BarFigure(const std::string& title, const std::vector<Bars>& rows) {
  double most = 0;
  for (const Bars& row : rows) {
    for (const Bar& bar : row.bars) most = std::max(most, bar.value);
  }
  std::string content;
  std::string description = title + ". ";
  double y = 4;
  for (const Bars& row : rows) {
    content += Text(kLeft - 8, y + kBar, "end", row.name);
    description += row.name + ":";
    double top = y;
    for (size_t i = 0; i < row.bars.size(); ++i) {
      const Bar& bar = row.bars[i];
      const double length = most > 0 ? kPlot * bar.value / most : 0;
      content +=
          fmt::format("<rect class=\"{} fill\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                      Color(i), kLeft, top, std::max(length, 1.0), kBar);
      content += Text(kLeft + length + 6, top + kBar - 3, "start", bar.text);
      description += fmt::format(" {}{}", bar.text, i + 1 == row.bars.size() ? ". " : ",");
      top += kBar + 2;
    }
    y = top + kBetweenRows;
  }
  return Svg(title, description, y, content);
}

std::string DistributionFigure(const std::string& title, const std::string& unit,
                               std::span<const Series> series) {
  const double step = StepOf(MostOf(series));
  const double most = step * std::ceil(std::max(MostOf(series) / step, 1.0) - 1e-9);
  double y = 0;
  std::string description;
  const auto histogram = [&](const Series& one, size_t index, double bottom) {
    const std::vector<int> counts = Histogram(one.values, 0, most, static_cast<int>(kBins));
    const int tallest = std::max(1, *std::max_element(counts.begin(), counts.end()));
    std::string bars;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      // What occurred at all is visible.
      const double height = std::max(1.5, kPanelPlot * counts[i] / tallest);
      bars += fmt::format(
          "<rect class=\"{} fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
          Color(index), kLeft + kPlot * static_cast<double>(i) / kBins, bottom - height, kPlot / kBins - 0.5,
          height);
    }
    return bars + Mark(one, 0.5, "p50", "end", most, bottom) + Mark(one, 0.99, "p99", "start", most, bottom);
  };
  std::string content = Panels(title, unit, series, y, histogram, description);
  for (double value = 0; value <= most * 1.001; value += step)
    content += Text(kLeft + kPlot * value / most, y + 14, "middle", Number(value));
  content += Text(kLeft + kPlot / 2, y + 30, "middle", unit);
  return Svg(title, description, y + kAxis, content);
}

std::string SpreadFigure(const std::string& title, std::span<const Spread> rows) {
  const LogAxis axis = AxisOf(rows);
  const double height = static_cast<double>(rows.size()) * kRow;
  std::string content = LogTicks(axis, height);
  std::string description = title + ". ";
  for (size_t i = 0; i < rows.size(); ++i) {
    const double bottom = (static_cast<double>(i) + 1) * kRow;
    content += Text(kLeft - 8, bottom - 6, "end", rows[i].name) + SpreadRow(rows[i], i, axis, bottom) +
               StraightLine("grid", kLeft, bottom, kLeft + kPlot, bottom) +
               Text(kLeft + kPlot + 6, bottom - 6, "start", fmt::format("p99 {:.3g} ms", rows[i].p99_ms));
    description += fmt::format("{}: {} times, p50 {:.3g} ms, p99 {:.3g} ms, longest {:.3g} ms. ",
                               rows[i].name, rows[i].times.count(), rows[i].p50_ms, rows[i].p99_ms,
                               Milliseconds(rows[i].times.largest()));
  }
  return Svg(title, description, height + kAxis, content);
}

std::string SequenceFigure(const std::string& title, const std::string& unit,
                           std::span<const Series> series) {
  const double most = std::max(MostOf(series), 1e-9);
  size_t longest = 1;
  for (const Series& one : series) longest = std::max(longest, one.values.size());
  double y = 0;
  std::string description;
  const auto dots = [&](const Series& one, size_t index, double bottom) {
    std::string all;
    for (size_t i = 0; i < one.values.size(); ++i) {
      all += fmt::format("<circle class=\"{} fill\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.8\"/>\n", Color(index),
                         kLeft + kPlot * (static_cast<double>(i) + 0.5) / static_cast<double>(longest),
                         bottom - kPanelPlot * one.values[i] / most);
    }
    return all +
           Text(kLeft + kPlot + 6, bottom - kPanelPlot + 8, "start",
                fmt::format("{} {}", Number(most), unit)) +
           Text(kLeft + kPlot + 6, bottom, "start", "0");
  };
  std::string content = Panels(title, unit, series, y, dots, description);
  content += Text(kLeft + kPlot / 2, y + 14, "middle", "in the order of the requests");
  return Svg(title, description, y + kAxis, content);
}

}  // namespace xsched::cli
