#include "cli/trace/device_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace xsched::cli {
namespace {

// So many queues are named; how many others run is said by a number.
constexpr size_t kMostNames = 4;

}  // namespace

void DeviceRuns::Worked(Queue queue, Duration from, Duration to) {
  changes_.push_back({.kind = Change::kReady, .at = from, .queue = queue});
  changes_.push_back({.kind = Change::kIdle, .at = to, .queue = queue});
}

void DeviceRuns::Held(Queue queue, Duration from, Duration to, const HoldReason& reason,
                      std::optional<Queue> by) {
  changes_.push_back({.kind = Change::kHeld, .at = from, .queue = queue, .reason = &reason, .by = by});
  changes_.push_back({.kind = Change::kReleased, .at = to, .queue = queue, .reason = &reason, .by = by});
}

void DeviceRuns::Write(TrackEvents& events, const std::string& device, const Names& names) {
  const TrackEvents::Track runs = events.AddTrack(0, fmt::format("{}: runs", device));
  const TrackEvents::Track decisions = events.AddTrack(0, fmt::format("{}: decisions", device));
  const TrackEvents::Track with_work = events.AddCounter(0, fmt::format("{}: queues with work", device));
  std::ranges::stable_sort(changes_, {}, &Change::at);
  std::string shown;
  int64_t counted = 0;
  for (auto first = changes_.begin(); first != changes_.end();) {
    const Duration at = first->at;
    const auto next =
        std::find_if(first, changes_.end(), [&](const Change& change) { return change.at != at; });
    std::for_each(first, next, [&](const Change& change) { Apply(change); });
    for (; first != next; ++first) {
      if (const std::string decision = DecisionOf(*first, names); !decision.empty())
        events.Instant(decisions, at, decision);
    }
    if (with_work_ != counted) events.Count(with_work, at, counted = with_work_);
    std::string running = Running(names);
    if (running == shown) continue;
    if (!shown.empty()) events.End(runs, at);
    if (!running.empty()) events.Begin(runs, at, running);
    shown = std::move(running);
  }
}

void DeviceRuns::Apply(const Change& change) {
  State& state = states_[change.queue];
  const bool had_work = state.bursts > 0;
  switch (change.kind) {
    case Change::kReady:
      ++state.bursts;
      break;
    case Change::kIdle:
      --state.bursts;
      break;
    case Change::kHeld:
      ++state.holds;
      break;
    case Change::kReleased:
      --state.holds;
      break;
  }
  with_work_ += int64_t{state.bursts > 0} - int64_t{had_work};
  if (state.IsRunning()) {
    running_.insert(change.queue);
  } else {
    running_.erase(change.queue);
  }
}

std::string DeviceRuns::DecisionOf(const Change& change, const Names& names) const {
  const std::string& name = names.at(change.queue);
  if (change.kind == Change::kHeld) {
    std::string what = fmt::format("{}: {}", name, change.reason->phrase);
    if (change.by) what += fmt::format(" {} {}", change.reason->preposition, names.at(*change.by));
    return what;
  }
  // A hold also ends where the queue has no more work, and where it has another reason.
  if (change.kind != Change::kReleased || !states_.at(change.queue).IsRunning()) return "";
  std::string what = fmt::format("{}: runs again", name);
  if (!change.by) return what;
  const auto other = states_.find(*change.by);
  if (other == states_.end() || other->second.IsRunning()) return what;
  return fmt::format("{}, {} {}", what, names.at(*change.by),
                     other->second.bursts > 0 ? "is held" : "is idle");
}

std::string DeviceRuns::Running(const Names& names) const {
  std::string running;
  size_t named = 0;
  for (const Queue queue : running_) {
    if (named++ == kMostNames) return running + fmt::format(" and {} more", running_.size() - kMostNames);
    running += (running.empty() ? "" : ", ") + names.at(queue);
  }
  return running;
}

}  // namespace xsched::cli
