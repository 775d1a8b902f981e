#include "cli/explain/process_waits.h"

#include <algorithm>
#include <limits>

#include "cli/record/recording_lines.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

}  // namespace

void ProcessWaits::Read(std::istream& input, const std::string& name) {
  ReadRecordingLines(input, name, [this](const JsonLine& line) { ReadLine(line); });
  for (const auto& [id, queue] : queues_) processes_.at(queue.process).unfinished += queue.open;
}

void ProcessWaits::ReadLine(const JsonLine& line) {
  const Duration at = line.Time("t");
  end_ = std::max(end_, at);
  if (line.Has("device")) {
    const JsonLine device = line.Part("device");
    devices_[device.Number("id", 0, kMost)] = device.Text("name", "device");
  } else if (line.Has("process")) {
    const JsonLine process = line.Part("process");
    const int64_t id = process.Number("id", 0, kMost);
    Process& known = processes_[id];
    known.name = process.Text("name", fmt::format("process {}", id));
    known.pid = static_cast<int32_t>(process.Number("pid", 0, kMost, 0));
    known.user = process.Text("user", "");
  } else if (line.Has("queue")) {
    ReadQueue(line.Part("queue"));
  } else if (line.Has("burst")) {
    ReadBurst(line.Part("burst"));
  } else if (line.Has("hold")) {
    ReadHold(line.Part("hold"), at);
  } else if (line.Has("lost")) {
    lost_ += static_cast<uint64_t>(line.Part("lost").Number("records", 1, kMost));
  }
}

void ProcessWaits::ReadQueue(const JsonLine& queue) {
  const int64_t id = queue.Number("id", 0, kMost);
  const int64_t process = queue.Number("process", 0, kMost);
  const auto owner = processes_.find(process);
  if (owner == processes_.end()) queue.Fail(fmt::format("process {} has no line before this one", process));
  Process& known = owner->second;
  if (queue.Has("hints"))
    known.priority =
        queue.Part("hints").Number("priority", PRIORITY_NO_EXECUTE, PRIORITY_MAX, PRIORITY_DEFAULT);
  if (!queues_.try_emplace(id, Queue{.process = process}).second) return;
  ++known.queues;
  const auto device = devices_.find(queue.Number("device", 0, kMost));
  if (device != devices_.end()) known.devices.insert(device->second);
}

void ProcessWaits::ReadBurst(const JsonLine& burst) {
  Queue& queue = QueueOf(burst);
  Process& process = processes_.at(queue.process);
  const Duration span = burst.Time("span_ns", Duration::zero());
  process.busy += span;
  process.device_time += burst.Time("device_ns", Duration::zero());
  process.waiting += burst.Time("waiting_ns", Duration::zero());
  if (burst.Flag("unseen")) return;
  queue.request = (queue.open && burst.Flag("continued") ? queue.request : Duration::zero()) + span;
  queue.open = burst.Flag("cut");
  if (!queue.open)
    process.request_ms.push_back(std::chrono::duration<double, std::milli>(queue.request).count());
}

void ProcessWaits::ReadHold(const JsonLine& hold, Duration at) {
  Process& process = processes_.at(QueueOf(hold).process);
  const Because because{&HoldReasonOf(hold.Text("why", "")),
                        hold.Has("by") ? QueueOf(hold, "by").process : 0};
  const Duration span = hold.Time("span_ns");
  Wait& wait = process.waits[because];
  wait.time += span;
  ++wait.times;
  if (span <= process.longest) return;
  process.longest = span;
  process.longest_at = at;
  process.longest_because = because;
}

ProcessWaits::Queue& ProcessWaits::QueueOf(const JsonLine& line, const char* key) {
  const int64_t number = line.Number(key, 0, kMost);
  const auto found = queues_.find(number);
  if (found == queues_.end()) line.Fail(fmt::format("{} {} has no line before this one", key, number));
  return found->second;
}

}  // namespace xsched::cli
