#include "cli/record/recording_writer.h"

#include <fmt/format.h>
#include <optional>

#include <algorithm>

#include "cli/hold_reasons.h"
#include "cli/queue_text.h"
#include "cli/record/recording_version.h"
#include "ipc/bursts.h"

namespace xsched::cli {

void RecordingWriter::Begin(const Head& head) {
  const Json line = {{"xsched_record", kRecordingVersion},
                     {"recorded",
                      {{"started", head.started},
                       {"started_unix_ns", head.started_unix_ns},
                       {"version", head.version},
                       {"policy", head.policy},
                       {"anonymous", anonymous_}}}};
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

void RecordingWriter::Write(const ipc::Packet& packet) {
  switch (packet.header().type) {
    case ipc::MessageType::kRecordedQueue:
      return WriteQueue(packet.As<ipc::RecordedQueue>());
    case ipc::MessageType::kRecordedBurst:
      return WriteBurst(packet.As<ipc::RecordedBurst>());
    case ipc::MessageType::kRecordedHold:
      return WriteHold(packet.As<ipc::RecordedHold>());
    case ipc::MessageType::kRecordedWait:
      return WriteWait(packet.As<ipc::RecordedWait>());
    case ipc::MessageType::kRecordedSlice:
      return WriteSlice(packet.As<ipc::RecordedSlice>());
    case ipc::MessageType::kRecordedTurn:
      return WriteTurn(packet.As<ipc::RecordedTurn>());
    case ipc::MessageType::kRecordedMemory:
      return WriteMemory(packet.As<ipc::RecordedMemory>());
    case ipc::MessageType::kRecordedInFlight:
      return WriteInFlight(packet.As<ipc::RecordedInFlight>());
    case ipc::MessageType::kRecordedEnd:
      return WriteEnd(packet.As<ipc::RecordedEnd>());
    case ipc::MessageType::kRecordedLoss:
      return WriteLoss(packet.As<ipc::RecordedLoss>());
    default:
      return;
  }
}

void RecordingWriter::End(Duration at, const std::string& why) {
  Line(std::max(static_cast<uint64_t>(std::max(at, Duration::zero()).count()), last_ns_), "end",
       {{"why", why}});
}

void RecordingWriter::Line(uint64_t at_ns, const char* kind, Json what) {
  last_ns_ = std::max(last_ns_, at_ns);
  Json line = {{"t", at_ns}};
  line[kind] = std::move(what);
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

uint64_t RecordingWriter::NumberOf(Numbers& numbers, const std::string& key) {
  return numbers.try_emplace(key, numbers.size() + 1).first->second;
}

const uint64_t* RecordingWriter::Find(const std::map<uint64_t, uint64_t>& queues, uint64_t id) {
  auto found = queues.find(id);
  return found == queues.end() ? nullptr : &found->second;
}

// ---- descriptions ----

void RecordingWriter::WriteQueue(const ipc::RecordedQueue& queue) {
  WriteDevice(queue);
  WriteProcess(queue);
  if (!queues_.contains(queue.queue_id)) queues_[queue.queue_id] = ++queues_seen_;
  const Place& place =
      places_[queue.queue_id] = {processes_.at(queue.client_id), devices_.at({queue.platform, queue.device})};
  Json what = {{"id", queues_.at(queue.queue_id)},
               {"process", place.process},
               {"device", place.device},
               {"level", std::clamp<uint32_t>(queue.level, kPreemptLevelBlock, kPreemptLevelInterrupt)}};
  if (!anonymous_) what["number"] = queue.queue_id;
  what["hints"] = {
      {"priority", queue.hints.priority},         {"utilization", queue.hints.utilization},
      {"deadline_us", queue.hints.deadline_us},   {"laxity_us", queue.hints.laxity_us},
      {"lax_priority", queue.hints.lax_priority}, {"critical_priority", queue.hints.critical_priority},
      {"weight", queue.more_hints.weight},        {"latency_target_us", queue.more_hints.latency_target_us},
      {"floor", queue.more_hints.floor},          {"guarantee_us", queue.more_hints.guarantee_us},
      {"period_us", queue.more_hints.period_us},  {"limit_us", queue.more_hints.limit_us},
      {"burst_us", queue.more_hints.burst_us}};
  Line(queue.at_ns, "queue", std::move(what));
}

void RecordingWriter::WriteDevice(const ipc::RecordedQueue& queue) {
  const auto [device, is_new] = devices_.try_emplace({queue.platform, queue.device}, devices_.size());
  if (!is_new) return;
  Line(queue.at_ns, "device",
       {{"id", device->second},
        {"platform", PlatformText(queue.platform)},
        {"name", std::string(queue.device_name)},
        {"level", std::clamp<uint32_t>(queue.level, kPreemptLevelBlock, kPreemptLevelInterrupt)}});
}

void RecordingWriter::WriteProcess(const ipc::RecordedQueue& queue) {
  const auto [process, is_new] = processes_.try_emplace(queue.client_id, processes_.size() + 1);
  if (!is_new) return;
  const std::string name = queue.name;
  const std::string user = UserText(queue.uid);
  Json what = {{"id", process->second}};
  if (anonymous_) {
    what["name"] = fmt::format("program {}", NumberOf(programs_, name));
    what["pid"] = process->second;
    what["user"] = fmt::format("user {}", NumberOf(users_, user));
  } else {
    what["name"] = name;
    what["pid"] = queue.pid;
    what["user"] = user;
  }
  // A job is another one if another user gave it the same number.
  if (queue.job != 0)
    what["job"] = std::to_string(NumberOf(jobs_, fmt::format("{} {}", queue.uid, queue.job)));
  Line(queue.at_ns, "process", std::move(what));
}

// ---- events ----

void RecordingWriter::WriteBurst(const ipc::RecordedBurst& burst) {
  const uint64_t* queue = FindQueue(burst.queue_id);
  if (queue == nullptr) return;
  const uint32_t count = std::clamp(burst.bursts, 1u, ipc::kMostBursts);
  for (uint32_t i = 0; i < count; ++i) WriteOneBurst(*queue, burst, i, count);
  last_ns_ = std::max(last_ns_, burst.at_ns + burst.span_ns);
}

// Of several, each has the average length. They are spread evenly over their time.
void RecordingWriter::WriteOneBurst(uint64_t queue, const ipc::RecordedBurst& all, uint32_t index,
                                    uint32_t count) {
  auto part = [&](uint64_t whole) { return whole / count + static_cast<uint64_t>(index < whole % count); };
  const uint64_t device_ns = all.service_ns / count;
  Json what = {{"queue", queue},
               {"commands", part(all.retired)},
               {"launched", part(all.launched)},
               {"device_ns", device_ns},
               {"span_ns", count == 1 ? all.span_ns : device_ns}};
  if (count > 1) what["averaged"] = true;
  if (all.waiting_ns != 0) what["waiting_ns"] = all.waiting_ns;
  for (const auto& [flag, name] : {std::pair{ipc::kBurstContinued, "continued"},
                                   {ipc::kBurstCut, "cut"},
                                   {ipc::kBurstShared, "shared"},
                                   {ipc::kBurstUnseen, "unseen"}}) {
    if ((all.flags & flag) != 0) what[name] = true;
  }
  ++bursts_;
  Line(all.at_ns + all.span_ns / count * index, "burst", std::move(what));
}

void RecordingWriter::WriteHold(const ipc::RecordedHold& hold) {
  const uint64_t* queue = FindQueue(hold.queue_id);
  if (queue == nullptr) return;
  Json what = {{"queue", *queue}, {"span_ns", hold.span_ns}};
  if (const HoldReason* why = FindHoldReason(static_cast<sched::WaitReason>(hold.why)))
    what["why"] = why->word;
  const uint64_t* other = FindQueue(hold.because_of);
  if (other == nullptr) other = Find(gone_, hold.because_of);
  if (other != nullptr) what["by"] = *other;
  Line(hold.at_ns, "hold", std::move(what));
  last_ns_ = std::max(last_ns_, hold.at_ns + hold.span_ns);
}

void RecordingWriter::WriteWait(const ipc::RecordedWait& wait) {
  const uint64_t* queue = FindQueue(wait.queue_id);
  const uint64_t* other = FindQueue(wait.waits_for);
  if (queue != nullptr && other != nullptr) Line(wait.at_ns, "wait", {{"queue", *queue}, {"for", *other}});
}

void RecordingWriter::WriteSlice(const ipc::RecordedSlice& slice) {
  WriteOfProcess(slice, "slice", {{"slice_us", slice.slice_us}});
}

void RecordingWriter::WriteTurn(const ipc::RecordedTurn& turn) {
  WriteOfProcess(turn, "turn", Json::object());
}

void RecordingWriter::WriteMemory(const ipc::RecordedMemory& memory) {
  WriteOfProcess(memory, "memory", {{"used", memory.used}, {"limit", memory.limit}});
}

// The message names a queue of the process on the device.
template <typename Message>
void RecordingWriter::WriteOfProcess(const Message& message, const char* kind, const Json& more) {
  const auto place = places_.find(message.queue_id);
  if (place == places_.end()) return;
  Json what = {
      {"process", place->second.process}, {"device", place->second.device}, {"span_ns", message.span_ns}};
  what.update(more);
  Line(message.at_ns, kind, std::move(what));
  last_ns_ = std::max(last_ns_, message.at_ns + message.span_ns);
}

void RecordingWriter::WriteInFlight(const ipc::RecordedInFlight& in_flight) {
  const uint64_t* queue = FindQueue(in_flight.queue_id);
  if (queue != nullptr)
    Line(in_flight.at_ns, "in_flight", {{"queue", *queue}, {"commands", in_flight.commands}});
}

void RecordingWriter::WriteEnd(const ipc::RecordedEnd& end) {
  const uint64_t* queue = FindQueue(end.queue_id);
  if (queue == nullptr) return;
  Line(end.at_ns, "gone", {{"queue", *queue}});
  gone_.insert(queues_.extract(end.queue_id));
  places_.erase(end.queue_id);
  if (const std::optional<uint64_t> forgotten = gone_lately_.Add(end.queue_id)) gone_.erase(*forgotten);
}

void RecordingWriter::WriteLoss(const ipc::RecordedLoss& loss) {
  lost_ += loss.lost;
  Line(loss.at_ns, "lost", {{"records", loss.lost}});
}

}  // namespace xsched::cli
