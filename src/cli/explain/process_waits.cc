#include "cli/explain/process_waits.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cli/bounded_sum.h"
#include "cli/queue_text.h"
#include "cli/record/recording_lines.h"
#include "ipc/bursts.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
// A request that was cut so long before the end was not followed any more, and may have ended.
constexpr Duration kNotFollowed = std::chrono::milliseconds(200);
// More than a server counts of anything.
constexpr int kPartShift = 48;

Duration TimeOf(uint64_t ns) {
  return Duration(static_cast<Duration::rep>(std::min<uint64_t>(ns, std::numeric_limits<int64_t>::max())));
}

}  // namespace

void ProcessWaits::Wait::Add(const Wait& other) {
  time = BoundedSum(time, other.time);
  times += other.times;
}

void ProcessWaits::Process::Add(const Process& other) {
  devices.insert(other.devices.begin(), other.devices.end());
  queues += other.queues;
  requests.Add(other.requests);
  unfinished += other.unfinished;
  unseen += other.unseen;
  unseen_longest = std::max(unseen_longest, other.unseen_longest);
  busy = BoundedSum(busy, other.busy);
  device_time = BoundedSum(device_time, other.device_time);
  waiting = BoundedSum(waiting, other.waiting);
  for (const auto& [because, wait] : other.waits) waits[because].Add(wait);
  if (other.longest <= longest) return;
  longest = other.longest;
  longest_at = other.longest_at;
  longest_because = other.longest_because;
  longest_is_part = other.longest_is_part;
}

// ---- a recording's lines ----

void ProcessWaits::Read(std::istream& input, const std::string& name) {
  was_cut_off_ = !ReadRecordingLines(
      input, name, [](const JsonLine&) {}, [this](const JsonLine& line) { ReadLine(line); });
  Finish(end_);
}

void ProcessWaits::ReadLine(const JsonLine& line) {
  const Duration at = line.Time("t");
  end_ = std::max(end_, at);
  if (line.Has("device")) {
    const JsonLine device = line.Part("device");
    devices_[static_cast<uint64_t>(device.Number("id", 0, kMost))] = device.Text("name", "device");
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
    ReadBurst(line.Part("burst"), at);
  } else if (line.Has("hold")) {
    ReadHold(line.Part("hold"), at);
  } else if (line.Has("lost")) {
    lost_ += static_cast<uint64_t>(line.Part("lost").Number("records", 1, kMost));
  }
}

void ProcessWaits::ReadQueue(const JsonLine& queue) {
  const int64_t process = queue.Number("process", 0, kMost);
  const auto owner = processes_.find(process);
  if (owner == processes_.end()) queue.Fail(fmt::format("process {} has no line before this one", process));
  const int64_t priority = queue.Has("hints") ? queue.Part("hints").Number("priority", PRIORITY_NO_EXECUTE,
                                                                           PRIORITY_MAX, PRIORITY_DEFAULT)
                                              : PRIORITY_DEFAULT;
  if (!AddQueue(queue.Number("id", 0, kMost), process, priority)) return;
  const auto device = devices_.find(static_cast<uint64_t>(queue.Number("device", 0, kMost)));
  if (device != devices_.end()) owner->second.devices.insert(*device);
}

void ProcessWaits::ReadBurst(const JsonLine& burst, Duration at) {
  AddBurst(QueueOf(burst), {.at = at,
                            .span = burst.Time("span_ns", Duration::zero()),
                            .device_time = burst.Time("device_ns", Duration::zero()),
                            .waiting = burst.Time("waiting_ns", Duration::zero()),
                            .continued = burst.Flag("continued"),
                            .cut = burst.Flag("cut"),
                            .unseen = burst.Flag("unseen")});
}

void ProcessWaits::ReadHold(const JsonLine& hold, Duration at) {
  const Queue* other = hold.Has("by") ? &QueueOf(hold, "by") : nullptr;
  AddHold(QueueOf(hold), BecauseOf(HoldReasonOf(hold.Text("why", "")), other), at, hold.Time("span_ns"));
}

ProcessWaits::Queue& ProcessWaits::QueueOf(const JsonLine& line, const char* key) {
  const int64_t number = line.Number(key, 0, kMost);
  const auto found = queues_.find(number);
  if (found == queues_.end()) line.Fail(fmt::format("{} {} has no line before this one", key, number));
  return found->second;
}

// ---- the server's messages ----

void ProcessWaits::Take(const ipc::Packet& packet) {
  switch (packet.header().type) {
    case ipc::MessageType::kRecordedQueue:
      return TakeQueue(packet.As<ipc::RecordedQueue>());
    case ipc::MessageType::kRecordedBurst:
      return TakeBurst(packet.As<ipc::RecordedBurst>());
    case ipc::MessageType::kRecordedHold:
      return TakeHold(packet.As<ipc::RecordedHold>());
    case ipc::MessageType::kRecordedEnd:
      return TakeEnd(packet.As<ipc::RecordedEnd>());
    case ipc::MessageType::kRecordedLoss:
      lost_ += packet.As<ipc::RecordedLoss>().lost;
      return;
    default:
      return;
  }
}

void ProcessWaits::TakeQueue(const ipc::RecordedQueue& queue) {
  const int64_t number = ProcessOf(queue);
  Process& process = processes_[number];
  process.name = queue.name;
  process.pid = queue.pid;
  process.user = UserText(queue.uid);
  process.job = queue.job;
  if (AddQueue(NumberOf(queue.queue_id), number, queue.hints.priority))
    process.devices.emplace(queue.device, queue.device_name);
}

int64_t ProcessWaits::ProcessOf(const ipc::RecordedQueue& queue) {
  const auto [client, is_new] = clients_.try_emplace(queue.client_id, NumberOf(queue.client_id));
  if (!is_new) return client->second;
  if (auto former = former_.extract({queue.pid, queue.job, UserText(queue.uid), queue.name}))
    client->second = former.mapped();
  return client->second;
}

void ProcessWaits::TakeBurst(const ipc::RecordedBurst& burst) {
  Queue* queue = FindQueue(burst.queue_id);
  if (queue == nullptr) return;
  // Of several, each has the average length, as in a recording (recording_writer.h).
  const uint32_t count = std::clamp(burst.bursts, 1u, ipc::kMostBursts);
  const Duration device_time = TimeOf(burst.service_ns / count);
  const Burst one{.at = BoundedSum(part_began_, TimeOf(burst.at_ns)),
                  .span = count == 1 ? TimeOf(burst.span_ns) : device_time,
                  .device_time = device_time,
                  .waiting = TimeOf(burst.waiting_ns),
                  .continued = (burst.flags & ipc::kBurstContinued) != 0,
                  .cut = (burst.flags & ipc::kBurstCut) != 0,
                  .unseen = (burst.flags & ipc::kBurstUnseen) != 0};
  for (uint32_t i = 0; i < count; ++i) AddBurst(*queue, one);
}

void ProcessWaits::TakeHold(const ipc::RecordedHold& hold) {
  const Queue* queue = FindQueue(hold.queue_id);
  if (queue == nullptr) return;
  const HoldReason* reason = FindHoldReason(static_cast<sched::WaitReason>(hold.why));
  const Because because =
      BecauseOf(reason == nullptr ? HoldReasonOf("") : *reason, FindQueue(hold.because_of));
  AddHold(*queue, because, TimeOf(hold.at_ns), TimeOf(hold.span_ns));
}

void ProcessWaits::TakeEnd(const ipc::RecordedEnd& end) {
  Queue* queue = FindQueue(end.queue_id);
  if (queue == nullptr || std::exchange(queue->gone, true)) return;
  processes_.at(queue->process).unfinished += std::exchange(queue->open, false);
  const std::optional<uint64_t> forgotten = gone_.Add(static_cast<uint64_t>(NumberOf(end.queue_id)));
  if (forgotten) queues_.erase(static_cast<int64_t>(*forgotten));
}

int64_t ProcessWaits::NumberOf(uint64_t id) const {
  return (part_ << kPartShift) + static_cast<int64_t>(id & ((uint64_t{1} << kPartShift) - 1));
}

ProcessWaits::Queue* ProcessWaits::FindQueue(uint64_t id) {
  const auto found = queues_.find(NumberOf(id));
  return found == queues_.end() ? nullptr : &found->second;
}

void ProcessWaits::BeginPart(Duration began) {
  ++part_;
  part_began_ = began;
  clients_.clear();
  former_.clear();
  for (auto& [number, process] : processes_) {
    process.queues_of_part = 0;
    former_.emplace(Identity{process.pid, process.job, process.user, process.name}, number);
  }
}

void ProcessWaits::Finish(Duration end) {
  end_ = std::max(end_, end);
  for (auto& [id, queue] : queues_) {
    if (!std::exchange(queue.open, false)) continue;
    Process& process = processes_.at(queue.process);
    if (BoundedSum(queue.until, kNotFollowed) < end_) {
      AddUnseen(process, queue.request);
    } else {
      ++process.unfinished;
    }
  }
}

// ---- sums ----

bool ProcessWaits::AddQueue(int64_t id, int64_t process, int64_t priority) {
  const auto [queue, is_new] = queues_.try_emplace(id, Queue{.process = process});
  Process& owner = processes_.at(process);
  queue->second.priority = owner.priority = priority;
  owner.queues_of_part += is_new;
  owner.queues = std::max(owner.queues, owner.queues_of_part);
  return is_new;
}

ProcessWaits::Because ProcessWaits::BecauseOf(const HoldReason& reason, const Queue* other) {
  return other == nullptr ? Because{&reason, 0, 0} : Because{&reason, other->process, other->priority};
}

void ProcessWaits::AddBurst(Queue& queue, const Burst& burst) {
  Process& process = processes_.at(queue.process);
  process.busy = BoundedSum(process.busy, burst.span);
  process.device_time = BoundedSum(process.device_time, burst.device_time);
  process.waiting = BoundedSum(process.waiting, burst.waiting);
  // A request ended while nobody looked.
  if (queue.open && !burst.continued) {
    AddUnseen(process, queue.request);
    queue.open = false;
  }
  if (burst.unseen) return AddUnseen(process, Duration::zero());
  // What goes on may have begun before it was looked at, or a part in between is not known.
  queue.whole = queue.open ? queue.whole && burst.at == queue.until : !burst.continued;
  queue.request = BoundedSum(queue.open ? queue.request : Duration::zero(), burst.span);
  queue.until = BoundedSum(burst.at, burst.span);
  queue.open = burst.cut;
  if (queue.open) return;
  if (queue.whole) return process.requests.Add(queue.request);
  AddUnseen(process, queue.request);
}

void ProcessWaits::AddUnseen(Process& process, Duration at_least) {
  ++process.unseen;
  process.unseen_longest = std::max(process.unseen_longest, at_least);
}

void ProcessWaits::AddHold(const Queue& queue, const Because& because, Duration at, Duration span) {
  Process& process = processes_.at(queue.process);
  process.waits[because].Add({.time = span, .times = 1});
  if (span <= process.longest) return;
  process.longest = span;
  process.longest_at = BoundedSum(part_began_, at);
  process.longest_is_part = at == Duration::zero();
  process.longest_because = because;
}

}  // namespace xsched::cli
