#include "cli/trace/device_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace xsched::cli {
namespace {

using Counts = std::map<std::optional<DeviceTurns::Process>, int>;  // how many changes say that each has it

// A hold names no process if the one with the turn is the queue's own, or may not be seen. So one that may
// not be seen has the turn only if nobody else does.
std::string HavingTurn(const Counts& counts, const std::map<DeviceTurns::Process, std::string>& names) {
  std::string having;
  bool is_unnamed = false;
  for (const auto& [process, count] : counts) {
    if (count <= 0) continue;
    if (!process) {
      is_unnamed = true;
      continue;
    }
    having += having.empty() ? "" : ", ";
    having += names.at(*process);
  }
  return having.empty() && is_unnamed ? "another process" : having;
}

}  // namespace

void DeviceTurns::HadTurn(Process process, Duration from, Duration to) {
  turns_.push_back({from, process, 1});
  turns_.push_back({to, process, -1});
  known_.insert(process);
}

void DeviceTurns::Had(std::optional<Process> process, Duration from, Duration to) {
  holds_.push_back({from, process, 1});
  holds_.push_back({to, process, -1});
}

void DeviceTurns::Write(TrackEvents& events, const std::string& device,
                        const std::map<Process, std::string>& names) {
  std::vector<Change> changes = turns_;
  std::ranges::copy_if(holds_, std::back_inserter(changes), [&](const Change& change) {
    return !change.process || !known_.contains(*change.process);
  });
  if (changes.empty()) return;
  const TrackEvents::Track track = events.AddTrack(0, fmt::format("{}: turns", device));
  std::ranges::stable_sort(changes, {}, &Change::at);
  Counts counts;
  std::string shown;
  for (auto change = changes.begin(); change != changes.end();) {
    const Duration at = change->at;
    for (; change != changes.end() && change->at == at; ++change) counts[change->process] += change->by;
    std::string having = HavingTurn(counts, names);
    if (having == shown) continue;
    if (!shown.empty()) events.End(track, at);
    if (!having.empty()) events.Begin(track, at, having);
    shown = std::move(having);
  }
}

}  // namespace xsched::cli
