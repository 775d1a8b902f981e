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
  // Of all processes that were added: only then is it known which arrows have both ends.
  void WriteThreads();
  void AddMemory(std::pair<int64_t, int64_t> device, std::vector<ChromeTrace::Memory>& memory);
  const ShownSlices& slices() const { return slices_; }

 private:
  struct ArrowEnd {
    size_t slice;
    uint64_t arrow;
    auto operator<=>(const ArrowEnd&) const = default;
  };
  struct Thread {
    TrackEvents::Track parent;
    std::string name;
    NestedSlices slices;
    std::vector<ChromeTrace::Point> points;
    std::vector<ArrowEnd> arrows;  // sorted
  };
  struct Arrow {
    size_t ends = 0;  // slices that are shown
    TrackEvents::Arrow shown = 0;
  };

  bool IsShown(Duration begin, Duration end) const { return begin <= beside_.until && end >= beside_.from; }
  Duration Since(Duration time) const { return time - beside_.from; }
  TrackEvents::Track TrackOf(const std::string& id, const ChromeTrace::Process& process);
  void AddThread(TrackEvents::Track parent, const std::string& name, ChromeTrace::Thread& thread);
  void Write(const Thread& thread);
  std::vector<TrackEvents::Arrow> ArrowsOf(const Thread& thread, size_t slice);

  const std::vector<std::string>& names_;
  const Beside& beside_;
  TrackEvents& events_;
  std::vector<Thread> threads_;
  std::unordered_map<uint64_t, Arrow> arrows_;
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
  NestedSlices nested(std::move(thread.slices));
  std::vector<ArrowEnd> ends;
  for (const ChromeTrace::ArrowEnd& end : thread.arrows) {
    if (const std::optional<size_t> slice = nested.At(end.at)) ends.push_back({*slice, end.arrow});
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const ArrowEnd& end : ends) ++arrows_[end.arrow].ends;
  threads_.push_back({parent, name, std::move(nested), std::move(thread.points), std::move(ends)});
}

void ChromeTracks::WriteThreads() {
  for (const Thread& thread : threads_) Write(thread);
}

void ChromeTracks::Write(const Thread& thread) {
  const NestedSlices& nested = thread.slices;
  std::vector<TrackEvents::Track> tracks;
  for (size_t i = 0; i < std::max<size_t>(nested.tracks(), 1); ++i) {
    tracks.push_back(
        events_.AddTrack(thread.parent, i == 0 ? thread.name : fmt::format("{} ({})", thread.name, i + 1)));
  }
  nested.Visit(
      [&](size_t index, size_t track) {
        const Slice& slice = nested.slices()[index];
        events_.Begin(tracks[track], Since(slice.begin), names_[slice.name], names_[slice.category],
                      ArrowsOf(thread, index));
      },
      [&](size_t index, size_t track) { events_.End(tracks[track], Since(nested.slices()[index].end)); });
  for (const ChromeTrace::Point& point : thread.points)
    events_.Instant(tracks.front(), Since(point.at), names_[point.name]);
}

// Without those whose other end is not shown.
std::vector<TrackEvents::Arrow> ChromeTracks::ArrowsOf(const Thread& thread, size_t slice) {
  std::vector<TrackEvents::Arrow> shown;
  const auto first = std::ranges::lower_bound(thread.arrows, slice, {}, &ArrowEnd::slice);
  for (auto end = first; end != thread.arrows.end() && end->slice == slice; ++end) {
    Arrow& arrow = arrows_.at(end->arrow);
    if (arrow.ends < 2) continue;
    if (arrow.shown == 0) arrow.shown = events_.AddArrow();
    shown.push_back(arrow.shown);
  }
  return shown;
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
  tracks.WriteThreads();
  for (auto& [device, memory] : trace.memory) tracks.AddMemory(device, memory);
  return tracks.slices();
}

}  // namespace xsched::cli
