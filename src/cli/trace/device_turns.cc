#include "cli/trace/device_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace xsched::cli {

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
    return change.process ? !known_.contains(*change.process) : known_.empty();
  });
  if (changes.empty()) return;
  const TrackEvents::Track track = events.AddTrack(0, fmt::format("{}: turns", device));
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::map<std::optional<Process>, int> counts;  // how many queues are off the device because of each
  std::string shown;
  for (auto change = changes.begin(); change != changes.end();) {
    const Duration at = change->at;
    for (; change != changes.end() && change->at == at; ++change) counts[change->process] += change->by;
    std::string having;
    for (const auto& [process, count] : counts) {
      if (count <= 0) continue;
      having += having.empty() ? "" : ", ";
      having += process ? names.at(*process) : "another process";
    }
    if (having == shown) continue;
    if (!shown.empty()) events.End(track, at);
    if (!having.empty()) events.Begin(track, at, having);
    shown = std::move(having);
  }
}

}  // namespace xsched::cli
