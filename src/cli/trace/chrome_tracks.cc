#include "cli/trace/chrome_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

namespace xsched::cli {
namespace {

// PyTorch's number of CPUs among types of devices.
constexpr int64_t kCpu = 0;

class ChromeTracks {
 public:
  ChromeTracks(const std::vector<std::string>& names, const Beside& beside, TrackEvents& events)
      : names_(names), beside_(beside), events_(events) {}

  void AddProcess(const std::string& id, ChromeTrace::Process& process);
  void AddMemory(std::pair<int64_t, int64_t> device, std::vector<ChromeTrace::Memory>& memory);
  const ShownSlices& slices() const { return slices_; }

 private:
  bool IsShown(Duration begin, Duration end) const { return begin <= beside_.until && end >= beside_.from; }
  Duration Since(Duration time) const { return time - beside_.from; }
  TrackEvents::Track TrackOf(const std::string& id, const ChromeTrace::Process& process);
  void AddThread(TrackEvents::Track parent, const std::string& name, ChromeTrace::Thread& thread);

  const std::vector<std::string>& names_;
  const Beside& beside_;
  TrackEvents& events_;
  std::unordered_map<uint64_t, TrackEvents::Arrow> arrows_;
  ShownSlices slices_;
};

std::optional<int32_t> PidOf(const std::string& id, const ChromeTrace::Process& process) {
  // A GPU's events have its number there.
  if (process.label.starts_with("GPU")) return std::nullopt;
  int32_t pid = 0;
  const auto read = std::from_chars(id.data(), id.data() + id.size(), pid);
  return read.ec == std::errc() && read.ptr == id.data() + id.size() && pid > 0 ? std::optional(pid)
                                                                                : std::nullopt;
}

TrackEvents::Track ChromeTracks::TrackOf(const std::string& id, const ChromeTrace::Process& process) {
  if (const std::optional<int32_t> pid = PidOf(id, process)) {
    if (const TrackEvents::Track known = beside_.process(*pid); known != 0) return known;
  }
  std::string name = fmt::format("torch: {}", process.name.empty() ? id : process.name);
  if (!process.label.empty()) name += fmt::format(" ({})", process.label);
  return events_.AddTrack(0, name);
}

void ChromeTracks::AddProcess(const std::string& id, ChromeTrace::Process& process) {
  std::optional<TrackEvents::Track> track;
  for (auto& [thread_id, thread] : process.threads) {
    const auto hidden = [&](const Slice& slice) { return !IsShown(slice.begin, slice.end); };
    slices_.left_out += std::erase_if(thread.slices, hidden);
    std::erase_if(thread.points,
                  [&](const ChromeTrace::Point& point) { return !IsShown(point.at, point.at); });
    if (thread.slices.empty() && thread.points.empty()) continue;
    slices_.shown += thread.slices.size();
    if (!track) track = TrackOf(id, process);
    AddThread(*track, thread.name.empty() ? fmt::format("thread {}", thread_id) : thread.name, thread);
  }
}

void ChromeTracks::AddThread(TrackEvents::Track parent, const std::string& name,
                             ChromeTrace::Thread& thread) {
  const NestedSlices nested(std::move(thread.slices));
  std::unordered_map<size_t, std::vector<TrackEvents::Arrow>> arrows;  // by the slice
  for (const ChromeTrace::ArrowEnd& end : thread.arrows) {
    const std::optional<size_t> slice = nested.At(end.at);
    if (!slice) continue;
    TrackEvents::Arrow& arrow = arrows_[end.arrow];
    if (arrow == 0) arrow = events_.AddArrow();
    arrows[*slice].push_back(arrow);
  }
  std::vector<TrackEvents::Track> tracks;
  for (size_t i = 0; i < std::max<size_t>(nested.tracks(), 1); ++i)
    tracks.push_back(events_.AddTrack(parent, i == 0 ? name : fmt::format("{} ({})", name, i + 1)));
  nested.Visit(
      [&](size_t index, size_t track) {
        const Slice& slice = nested.slices()[index];
        const auto known = arrows.find(index);
        events_.Begin(tracks[track], Since(slice.begin), names_[slice.name], names_[slice.category],
                      known == arrows.end() ? std::vector<TrackEvents::Arrow>() : known->second);
      },
      [&](size_t index, size_t track) { events_.End(tracks[track], Since(nested.slices()[index].end)); });
  for (const ChromeTrace::Point& point : thread.points)
    events_.Instant(tracks.front(), Since(point.at), names_[point.name]);
}

void ChromeTracks::AddMemory(std::pair<int64_t, int64_t> device, std::vector<ChromeTrace::Memory>& memory) {
  std::erase_if(memory, [&](const ChromeTrace::Memory& one) { return !IsShown(one.at, one.at); });
  if (memory.empty()) return;
  const std::string where = device.first == kCpu ? "CPU" : fmt::format("GPU {}", device.second);
  const TrackEvents::Track track =
      events_.AddCounter(0, fmt::format("torch: allocated memory of {}, bytes", where));
  for (const ChromeTrace::Memory& one : memory) events_.Count(track, Since(one.at), one.bytes);
}

}  // namespace

ShownSlices AddChromeTrace(ChromeTrace&& trace, const Beside& beside, TrackEvents& events) {
  ChromeTracks tracks(trace.names, beside, events);
  for (auto& [id, process] : trace.processes) tracks.AddProcess(id, process);
  for (auto& [device, memory] : trace.memory) tracks.AddMemory(device, memory);
  return tracks.slices();
}

}  // namespace xsched::cli
