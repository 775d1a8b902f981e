#include "cli/calibrate/fit.h"

#include <algorithm>
#include <cmath>

#include "cli/statistics.h"

namespace xsched::cli {
namespace {

// A server predicts pauses after four of them (docs/design.md, section 5), and a device's clocks rise.
constexpr size_t kFirstTasks = 6;
constexpr size_t kBlocks = 20;
constexpr size_t kFewestCycles = 8;
// In a device that takes the commands of both programs in turn, one ends with every second command.
constexpr double kLongGap = 4;

double Nanoseconds(Duration time) { return static_cast<double>(time.count()); }

double HalfOfMiddle(const std::vector<double>& values) {
  return (Percentile(values, 0.75) - Percentile(values, 0.25)) / 2;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Spans WithoutFirst(Spans tasks) { return tasks.subspan(std::min(kFirstTasks, tasks.size())); }

// The commands that ended from `begin` to `end`.
Spans Within(Spans commands, Duration begin, Duration end) {
  const auto ends_before = [](const Span& span, Duration time) { return span.end < time; };
  const auto first = std::lower_bound(commands.begin(), commands.end(), begin, ends_before);
  const auto last = std::lower_bound(first, commands.end(), end, ends_before);
  return {first, last};
}

template <typename Get>
std::vector<double> Values(std::span<const Hold> holds, Get&& get) {
  std::vector<double> values;
  for (const Hold& hold : holds) values.push_back(get(hold));
  return values;
}

std::vector<double> Counts(std::span<const Hold> holds) {
  return Values(holds, [](const Hold& hold) { return static_cast<double>(hold.commands); });
}

}  // namespace

std::optional<Estimate> Latency(Spans tasks) {
  if (tasks.size() <= kFirstTasks) return std::nullopt;
  std::vector<double> values;
  for (const Span& task : WithoutFirst(tasks)) values.push_back(Nanoseconds(task.end - task.begin));
  return Estimate{Percentile(values, 0.5), HalfOfMiddle(values)};
}

Estimate CommandLength(Spans commands) {
  const size_t block = commands.size() / kBlocks;
  std::vector<double> values;
  for (size_t i = 0; block > 0 && i + block < commands.size(); i += block)
    values.push_back(Nanoseconds(commands[i + block].end - commands[i].end) / static_cast<double>(block));
  return {Percentile(values, 0.5), HalfOfMiddle(values)};
}

std::optional<Slices> FitSlices(Spans one, Spans other, double command) {
  if (one.empty() || other.empty()) return std::nullopt;
  const Spans both = Within(one, other.front().end, other.back().end);
  std::vector<double> slices, changes;
  std::optional<size_t> begin;  // of a slice: its first command that ended
  for (size_t i = 1; i < both.size(); ++i) {
    if (Nanoseconds(both[i].end - both[i - 1].end) < kLongGap * command) continue;
    if (begin) {
      const double cycle = Nanoseconds(both[i].end - both[*begin].end);
      slices.push_back(command * static_cast<double>(i - *begin));
      changes.push_back(cycle / 2 - slices.back());
    }
    begin = i;
  }
  if (slices.size() < kFewestCycles) return std::nullopt;
  return Slices{{Mean(slices), HalfOfMiddle(slices)}, {std::max(0.0, Mean(changes)), HalfOfMiddle(changes)}};
}

Estimate FitChangeWhenIdle(Spans tasks, Spans other, double command, double change) {
  const Spans counted = WithoutFirst(tasks);
  std::vector<double> values;
  const size_t block = std::max<size_t>(1, counted.size() / kBlocks);
  for (size_t i = 0; i + block < counted.size(); i += block) {
    // What the other program lost from one task's end to another's, for each of the tasks.
    const Duration begin = counted[i].end;
    const Duration end = counted[i + block].end;
    const double ran = command * static_cast<double>(Within(other, begin, end).size());
    const double lost = (Nanoseconds(end - begin) - ran) / static_cast<double>(block);
    values.push_back(lost - command - change);
  }
  return {std::max(0.0, Mean(values)), HalfOfMiddle(values)};
}

std::vector<Hold> HoldsOf(Spans tasks, Spans other) {
  std::vector<Hold> holds;
  for (const Span& task : WithoutFirst(tasks)) {
    const Spans beside = Within(other, task.begin, task.end);
    const Span* const next = beside.data() + beside.size();
    if (beside.empty() || next == other.data() + other.size()) continue;
    holds.push_back({.stopped = Nanoseconds(beside.back().end - task.begin),
                     .commands = static_cast<int>(beside.size()),
                     .resumed = Nanoseconds(next->end - task.end)});
  }
  return holds;
}

Estimate EarliestStop(std::span<const Hold> holds) {
  const std::vector<double> stops = Values(holds, [](const Hold& hold) { return hold.stopped; });
  // Of equally likely values, eight tenths lie between these two. The outermost ones are more often wrong.
  const double width = (Percentile(stops, 0.9) - Percentile(stops, 0.1)) / 0.8;
  return {Percentile(stops, 0.1) - width / 10,
          holds.empty() ? 0 : width / std::sqrt(static_cast<double>(holds.size()))};
}

Estimate Resumed(std::span<const Hold> holds) {
  const std::vector<double> times = Values(holds, [](const Hold& hold) { return hold.resumed; });
  return {Percentile(times, 0.5), HalfOfMiddle(times)};
}

double CommandsAfterHold(std::span<const Hold> holds) {
  const std::vector<double> counts = Counts(holds);
  return (Percentile(counts, 0.25) + Percentile(counts, 0.5) + Percentile(counts, 0.75)) / 3;
}

}  // namespace xsched::cli
