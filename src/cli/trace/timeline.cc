#include "cli/trace/timeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cli/hold_reasons.h"
#include "cli/record/recording_lines.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostNumber = std::numeric_limits<int64_t>::max();
// Far from where a sum with a recording's times overflows.
constexpr int64_t kMostUnixNs = std::numeric_limits<int64_t>::max() / 4;
constexpr int64_t kMostCommands = int64_t{1} << 48;  // of a burst, as the server counts

template <typename Value>
Value& Find(const JsonLine& line, const char* key, std::map<int64_t, Value>& all) {
  const int64_t number = line.Number(key, 0, kMost);
  const auto found = all.find(number);
  if (found == all.end()) line.Fail(fmt::format("{} {} has no line before this one", key, number));
  return found->second;
}

}  // namespace

void Timeline::Read(std::istream& input, const std::string& name) {
  has_ended_ = ReadRecordingLines(
      input, name, [this](const JsonLine& recorded) { ReadHead(recorded); },
      [this](const JsonLine& line) { ReadLine(line); });
  Finish();
}

void Timeline::ReadHead(const JsonLine& recorded) {
  if (!unix_times_) return;
  if (!recorded.Has("started_unix_ns")) {
    recorded.Fail(
        "started_unix_ns is missing: an older XSched recorded it, which does not say precisely enough when");
  }
  began_ = Duration(recorded.Number("started_unix_ns", 0, kMostUnixNs));
  events_.SetOrigin(began_);
}

void Timeline::ReadLine(const JsonLine& line) {
  const Duration at = line.Time("t");
  length_ = std::max(length_, at);
  if (line.Has("device")) {
    const JsonLine device = line.Part("device");
    devices_[device.Number("id", 0, kMost)].name = device.Text("name", "device");
  } else if (line.Has("process")) {
    ReadProcess(line.Part("process"));
  } else if (line.Has("queue")) {
    ReadQueue(line.Part("queue"), at);
  } else if (line.Has("burst")) {
    ReadBurst(line.Part("burst"), at);
  } else if (line.Has("hold")) {
    ReadHold(line.Part("hold"), at);
  } else if (line.Has("wait")) {
    ReadWait(line.Part("wait"), at);
  } else if (line.Has("slice")) {
    ReadSlice(line.Part("slice"), at);
  } else if (line.Has("turn")) {
    ReadTurn(line.Part("turn"), at);
  } else if (line.Has("memory")) {
    ReadMemory(line.Part("memory"), at);
  } else if (line.Has("in_flight")) {
    ReadInFlight(line.Part("in_flight"), at);
  } else if (line.Has("lost")) {
    lost_ += static_cast<uint64_t>(line.Part("lost").Number("records", 1, kMost));
  } else if (!line.Has("gone") && !line.Has("end")) {
    line.Fail("no kind of line that a recording has");
  }
}

void Timeline::ReadProcess(const JsonLine& process) {
  const int64_t id = process.Number("id", 0, kMost);
  const auto pid = static_cast<int32_t>(process.Number("pid", 0, kMost, id));
  const std::string name = process.Text("name", fmt::format("process {}", id));
  processes_[id] = {events_.AddProcess(pid, name), pid, name};
}

// The same queue again: its hints have changed.
void Timeline::ReadQueue(const JsonLine& line, Duration at) {
  const int64_t id = line.Number("id", 0, kMost);
  int64_t priority = PRIORITY_DEFAULT;
  if (line.Has("hints"))
    priority = line.Part("hints").Number("priority", PRIORITY_NO_EXECUTE, PRIORITY_MAX, PRIORITY_DEFAULT);
  if (const auto known = queues_.find(id); known != queues_.end()) {
    events_.Instant(known->second.requests, at, "other hints", {{"priority", priority}});
    return;
  }
  const Process& process = Find(line, "process", processes_);
  const Device& device = Find(line, "device", devices_);
  // As other tools call it, if the recording says so.
  const int64_t number = line.Number("number", 0, kMostNumber, id);
  const std::string name = fmt::format("queue {} on {}", number, device.name);
  const TrackEvents::Track requests = events_.AddTrack(process.track, name);
  queues_[id] = {.requests = requests,
                 .holds = events_.AddTrack(process.track, fmt::format("queue {} held", number)),
                 .number = number,
                 .process = line.Number("process", 0, kMost),
                 .device = line.Number("device", 0, kMost),
                 .name = fmt::format("queue {} ({})", number, process.name)};
  events_.Instant(requests, at, "new queue",
                  {{"priority", priority}, {"level", line.Number("level", 1, 3, 1)}});
}

void Timeline::ReadBurst(const JsonLine& burst, Duration at) {
  Queue& queue = QueueOf(burst);
  const bool goes_on = queue.open && burst.Flag("continued");
  if (!goes_on) {
    EndRequest(queue);
    queue.open = true;
    queue.commands = queue.launched = queue.device_ns = queue.waiting_ns = 0;
    ++requests_;
    events_.Begin(queue.requests, at, "request");
  }
  // What goes on had work all the time.
  const Duration since = goes_on ? queue.open_until : at;
  queue.open_until = at + burst.Time("span_ns", Duration::zero());
  length_ = std::max(length_, queue.open_until);
  devices_.at(queue.device).runs.Worked(burst.Number("queue", 0, kMost), since, queue.open_until);
  queue.commands += burst.Number("commands", 0, kMostCommands);
  queue.device_ns += burst.Time("device_ns").count();
  queue.waiting_ns += burst.Time("waiting_ns", Duration::zero()).count();
  queue.launched += burst.Number("launched", 0, kMostCommands, 0);
  if (burst.Flag("cut")) {
    // An older recording does not say what was launched.
    if (queue.launched == 0) return;
    return CountInFlight(queue, queue.open_until, std::max<int64_t>(queue.launched - queue.commands, 0));
  }
  if (queue.in_flight != 0) events_.Count(queue.in_flight, queue.open_until, 0);
  EndRequest(queue);
}

// Known where a burst was cut, and from time to time within a long one. Otherwise, a recording says how many
// commands there were, and not when each was launched and had retired.
void Timeline::CountInFlight(Queue& queue, Duration at, int64_t commands) {
  if (queue.in_flight == 0) {
    queue.in_flight = events_.AddCounter(processes_.at(queue.process).track,
                                         fmt::format("queue {}: commands in flight", queue.number));
  }
  events_.Count(queue.in_flight, at, commands);
}

void Timeline::EndRequest(Queue& queue) {
  if (!queue.open) return;
  queue.open = false;
  events_.End(queue.requests, queue.open_until,
              {{"commands", queue.commands},
               {"device time, ns", queue.device_ns},
               {"held or off the device, ns", queue.waiting_ns}});
}

void Timeline::ReadHold(const JsonLine& hold, Duration at) {
  const Queue& queue = QueueOf(hold);
  const HoldReason& reason = HoldReasonOf(hold.Text("why", ""));
  std::string what = reason.phrase;
  TrackEvents::Arrow arrow = 0;
  std::optional<int64_t> by;
  if (hold.Has("by")) {
    by = hold.Number("by", 0, kMost);
    const Queue& other = QueueOf(hold, "by");
    what += fmt::format(" {} {}", reason.preposition, other.name);
    arrow = events_.AddArrow();
    events_.Instant(other.requests, at, fmt::format("goes before {}", queue.name), {}, arrow);
  }
  const Duration until = EndOf(hold, at);
  events_.Begin(queue.holds, at, what, arrow);
  events_.End(queue.holds, until);
  if (reason.reason == sched::WaitReason::kOffDevice) {
    devices_.at(queue.device)
        .turns.Had(by ? std::optional(queues_.at(*by).process) : std::nullopt, at, until);
  }
  devices_.at(queue.device).runs.Held(hold.Number("queue", 0, kMost), at, until, reason, by);
}

void Timeline::ReadWait(const JsonLine& wait, Duration at) {
  const Queue& queue = QueueOf(wait);
  events_.Instant(queue.requests, at, fmt::format("waits for {}", QueueOf(wait, "for").name));
}

void Timeline::ReadSlice(const JsonLine& slice, Duration at) {
  const std::chrono::microseconds length(slice.Number("slice_us", 0, kMost));
  ShareOf(slice).HadSlice(events_, at, EndOf(slice, at), length);
}

void Timeline::ReadTurn(const JsonLine& turn, Duration at) {
  Find(turn, "process", processes_);
  Find(turn, "device", devices_).turns.HadTurn(turn.Number("process", 0, kMost), at, EndOf(turn, at));
}

void Timeline::ReadMemory(const JsonLine& memory, Duration at) {
  ShareOf(memory).HadMemory(events_, at, EndOf(memory, at), memory.Number("used", 0, kMostNumber),
                            memory.Number("limit", 0, kMostNumber));
}

void Timeline::ReadInFlight(const JsonLine& in_flight, Duration at) {
  CountInFlight(QueueOf(in_flight), at, in_flight.Number("commands", 0, kMostCommands));
}

void Timeline::Finish() {
  DeviceRuns::Names names;
  for (auto& [id, queue] : queues_) {
    EndRequest(queue);
    names[id] = queue.name;
  }
  std::map<DeviceTurns::Process, std::string> programs;
  for (auto& [id, process] : processes_) {
    programs[id] = fmt::format("{} ({})", process.name, process.pid);
    for (auto& [device, share] : process.shares) share.Finish(events_);
  }
  for (auto& [id, device] : devices_) {
    device.runs.Write(events_, device.name, names);
    device.turns.Write(events_, device.name, programs);
  }
}

ShownSlices Timeline::AddTorch(ChromeTrace trace) {
  const auto process = [this](int32_t pid) {
    const auto found =
        std::ranges::find_if(processes_, [&](const auto& known) { return known.second.pid == pid; });
    return found == processes_.end() ? TrackEvents::Track{0} : found->second.track;
  };
  return AddChromeTrace(std::move(trace), {began_, began_ + length_, process}, events_);
}

Timeline::Queue& Timeline::QueueOf(const JsonLine& line, const char* key) { return Find(line, key, queues_); }

DeviceShare& Timeline::ShareOf(const JsonLine& line) {
  Process& process = Find(line, "process", processes_);
  const Device& device = Find(line, "device", devices_);
  return process.shares.try_emplace(line.Number("device", 0, kMost), process.track, device.name)
      .first->second;
}

Duration Timeline::EndOf(const JsonLine& line, Duration at) {
  const Duration until = at + line.Time("span_ns");
  length_ = std::max(length_, until);
  return until;
}

}  // namespace xsched::cli
