#include "server/recording/process_track.h"

#include <algorithm>
#include <utility>

namespace xsched::server {
namespace {

// More than any device has: a client that writes nonsense must not spoil the file.
constexpr uint64_t kMostBytes = uint64_t{1} << 60;

// One that has lasted from `since` until `now`.
template <typename Message>
Message SpanOf(sched::QueueId queue, TimePoint since, TimePoint now) {
  Message message{};
  message.queue_id = static_cast<uint64_t>(queue);
  message.at_ns = RecordedTime(TimePoint{}, since);
  message.span_ns = RecordedTime(since, now);
  return message;
}

}  // namespace

void ProcessTrack::SeeSlice(Duration slice, sched::QueueId queue, TimePoint now, RecordSink& sink) {
  if (slice == sched::kNoSlice || slice == slice_) return;
  auto message = SpanOf<ipc::RecordedSlice>(queue, std::exchange(slice_since_, now), now);
  const Duration former = std::exchange(slice_, slice);
  if (former == sched::kDriversSlice) return;
  message.slice_us = static_cast<uint64_t>(former / std::chrono::microseconds(1));
  sink.Put(message);
}

void ProcessTrack::SeeTurn(bool has_turn, sched::QueueId queue, TimePoint now, RecordSink& sink) {
  if (has_turn == turn_since_.has_value()) return;
  const auto since = std::exchange(turn_since_, has_turn ? std::optional(now) : std::nullopt);
  if (since) sink.Put(SpanOf<ipc::RecordedTurn>(queue, *since, now));
}

void ProcessTrack::SeeMemory(const ipc::MemoryWords& memory, sched::QueueId queue, TimePoint now,
                             RecordSink& sink) {
  read_memory_at_ = now + kReadMemoryEvery;
  if (memory.used == memory_.used && memory.limit == memory_.limit) return;
  auto message = SpanOf<ipc::RecordedMemory>(queue, std::exchange(memory_since_, now), now);
  const ipc::MemoryWords former = std::exchange(memory_, memory);
  if (former.limit == 0) return;  // it was not counted
  message.used = std::min(former.used, kMostBytes);
  message.limit = std::min(former.limit, kMostBytes);
  sink.Put(message);
}

void ProcessTrack::Finish(sched::QueueId queue, TimePoint now, RecordSink& sink) {
  SeeSlice(sched::kDriversSlice, queue, now, sink);
  SeeTurn(false, queue, now, sink);
  SeeMemory({}, queue, now, sink);
}

}  // namespace xsched::server
