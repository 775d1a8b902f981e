#include "cli/explain/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace xsched::cli {
namespace {

// Shorter waits are no reason to be late.
constexpr Duration kMentioned = std::chrono::microseconds(1);

std::string RequestsText(const ProcessWaits::Process& process) {
  const Distribution& requests = process.requests;
  std::string text = CountText(requests.count(), "request");
  if (requests.count() != 0) {
    text += fmt::format(", p50 {}, p99 {}, longest {}", TimeText(requests.Percentile(0.5)),
                        TimeText(requests.Percentile(0.99)), TimeText(requests.largest()));
  }
  if (process.unfinished != 0) text += fmt::format("; {} not finished", process.unfinished);
  if (process.unseen == 0) return text;
  text += fmt::format("; {} of unknown length", process.unseen);
  if (process.unseen_longest >= kMentioned) {
    text += fmt::format(", {}at least {}", process.unseen == 1 ? "" : "the longest ",
                        TimeText(process.unseen_longest));
  }
  return text;
}

// "2 × A100, L4".
std::string DevicesText(const ProcessWaits::Process& process) {
  std::map<std::string, int> counts;
  for (const auto& [number, name] : process.devices) ++counts[name];
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts)
    texts.push_back(count == 1 ? name : fmt::format("{} × {}", count, name));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string NameOf(const ProcessWaits::Process& process) {
  return fmt::format("{} (pid {})", process.name, process.pid);
}

std::string BecauseText(const ProcessWaits& waits, const ProcessWaits::Process& process,
                        const ProcessWaits::Because& because) {
  const HoldReason& reason = *because.reason;
  if (*reason.preposition == '\0') return reason.phrase;
  const auto other = waits.processes().find(because.process);
  if (other == waits.processes().end())
    return fmt::format("{} {} a queue that you may not see", reason.phrase, reason.preposition);
  if (&other->second == &process ||
      (process.job != 0 && process.pid == 0 && other->second.job == process.job))
    return fmt::format("{} {} another queue of its own", reason.phrase, reason.preposition);
  return fmt::format("{} {} {}, priority {}", reason.phrase, reason.preposition, NameOf(other->second),
                     because.priority);
}

std::string TimeText(Duration time) {
  const double us = std::chrono::duration<double, std::micro>(time).count();
  if (us < 1e3) return fmt::format("{:.0f} µs", us);
  return us < 1e6 ? fmt::format("{:.1f} ms", us / 1e3) : fmt::format("{:.1f} s", us / 1e6);
}

std::string CountText(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool HasRecords(const ProcessWaits::Process& process) {
  return process.busy > Duration::zero() || process.requests.count() != 0 || process.unfinished != 0 ||
         process.unseen != 0 || !process.waits.empty();
}

std::string Explanation(const ProcessWaits& waits, const ProcessWaits::Process& process) {
  const std::string text = fmt::format("{}, priority {}, {} on {}\n", NameOf(process), process.priority,
                                       CountText(process.queues, "queue"), DevicesText(process));
  if (!HasRecords(process)) return text + "  Nothing of it was recorded.\n";
  return text + Findings(waits, process);
}

namespace {

using ReasonToWait = std::pair<std::string, ProcessWaits::Wait>;

// The longest first. Those that a reader cannot tell apart are one: of several queues of its own.
std::vector<ReasonToWait> ReasonsOf(const ProcessWaits& waits, const ProcessWaits::Process& process) {
  std::map<std::string, ProcessWaits::Wait> by_text;
  for (const auto& [because, wait] : process.waits) by_text[BecauseText(waits, process, because)].Add(wait);
  std::vector<ReasonToWait> reasons(by_text.begin(), by_text.end());
  std::erase_if(reasons, [](const ReasonToWait& reason) { return reason.second.time < kMentioned; });
  std::ranges::stable_sort(reasons, std::greater{}, [](const auto& reason) { return reason.second.time; });
  return reasons;
}

}  // namespace

std::string Findings(const ProcessWaits& waits, const ProcessWaits::Process& process) {
  std::string text = fmt::format("  {}.\n", RequestsText(process));
  text += fmt::format("  Its queues had work for {}, and used {} of the device's time.\n",
                      TimeText(process.busy), TimeText(process.device_time));
  const std::vector<ReasonToWait> reasons = ReasonsOf(waits, process);
  if (reasons.empty()) return text + "  Nothing made it wait.\n";
  Duration waited{};
  for (const auto& [because, wait] : reasons) waited += wait.time;
  if (process.busy > Duration::zero()) {
    text +=
        fmt::format("  They did not run for {} of it ({:.0f} %):\n", TimeText(waited),
                    100.0 * static_cast<double>(waited.count()) / static_cast<double>(process.busy.count()));
  } else {
    text += fmt::format("  They did not run for {}:\n", TimeText(waited));
  }
  for (const auto& [because, wait] : reasons)
    text += fmt::format("    {} in {}: {}\n", TimeText(wait.time), CountText(wait.times, "wait"), because);
  text += fmt::format("  The longest wait: {}{}, {} ago, {}\n", process.longest_is_part ? "at least " : "",
                      TimeText(process.longest),
                      TimeText(std::max(waits.end() - process.longest_at, Duration::zero())),
                      BecauseText(waits, process, process.longest_because));
  return text;
}

}  // namespace xsched::cli
