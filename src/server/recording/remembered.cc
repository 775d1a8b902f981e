#include "server/recording/remembered.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/agent.h"
#include "server/recording/process_tracks.h"

namespace xsched::server {
namespace {

class UnfinishedSink final : public RecordSink {
 public:
  explicit UnfinishedSink(std::deque<History::Event>& events) : events_(events) {}

  void Put(const RecordedEvent& event) override {
    std::visit(
        [&]<typename T>(const T& known) {
          if constexpr (std::is_constructible_v<History::Event, const T&>) events_.emplace_back(known);
        },
        event);
  }

 private:
  std::deque<History::Event>& events_;
};

}  // namespace

Remembered::Remembered(const Parts& parts, const Peer& tool, TimePoint since, TimePoint now)
    : parts_(parts), tool_(tool), since_(since) {
  const History& history = parts_.history;
  readers_ = history.Read(since, [&](uid_t uid) { return MaySee(uid); });
  TimePoint covered_since = history.is_kept() ? std::max(since, history.began()) : now;
  for (const History::Reader& reader : readers_)
    covered_since = std::max(covered_since, history.RemembersSince(reader.uid()));
  covered_ms_ = static_cast<uint32_t>(
      std::min<int64_t>((now - covered_since) / std::chrono::milliseconds(1), UINT32_MAX));
  covered_from_ns_ = RecordedTime(since, covered_since);
  if (history.is_kept()) PutUnfinished(now);
}

// Slices, turns and memory go on also of processes whose queues report nothing now.
void Remembered::PutUnfinished(TimePoint now) {
  UnfinishedSink sink(unfinished_);
  SinceSink of_processes(parts_.history.began(), sink);
  ProcessTracks::Unfinished processes;
  parts_.queues.ForEach([&](const Queue& queue) {
    if (MaySee(queue.agent->connection.peer.uid)) processes.Put(queue, now, of_processes);
  });
  parts_.history.Unfinished(
      now, sink, [&](sched::QueueId id, uid_t uid) -> std::optional<QueueTrack::Reading> {
        const Queue* queue = MaySee(uid) ? parts_.queues.Find(id) : nullptr;
        return queue == nullptr ? std::nullopt : std::optional(parts_.reader.Read(*queue, now));
      });
}

bool Remembered::PutNext(RecordingOutbox& outbox, TimePoint now) {
  if (!readers_.empty()) {
    History::Reader& reader = readers_.back();
    if (const History::Event* event = reader.Next()) {
      Put(outbox, *event, now);
    } else {
      outbox.Drop(reader.lost());
      readers_.pop_back();
    }
    return true;
  }
  if (!unfinished_.empty()) {
    Put(outbox, unfinished_.front(), now);
    unfinished_.pop_front();
    return true;
  }
  outbox.PutLoss(now);
  outbox.PutLastReply(covered_ms_);
  return false;
}

// Times count from the beginning of the asked time. What had begun before it begins with it.
void Remembered::Put(RecordingOutbox& outbox, History::Event event, TimePoint now) {
  const uint64_t skipped = RecordedTime(parts_.history.began(), since_);
  const uint64_t unknown = RecordedTime(since_, parts_.history.began());
  std::visit(
      [&](auto& known) {
        const uint64_t before = std::max(skipped, known.at_ns) - known.at_ns;
        if constexpr (requires { known.bursts; }) {
          // Of several, only the first one had.
          if (before != 0 && known.bursts <= 1) known.flags |= ipc::kBurstContinued;
        }
        known.at_ns = std::max(skipped, known.at_ns) - skipped + unknown;
        if constexpr (requires { known.span_ns; }) known.span_ns -= std::min(before, known.span_ns);
        if constexpr (requires { known.service_ns; }) {
          known.service_ns = std::min(known.service_ns, known.span_ns);
          known.waiting_ns = std::min(known.waiting_ns, known.span_ns);
        }
        if (!Describe(outbox, known.queue_id, now)) {
          uint64_t end = known.at_ns;
          if constexpr (requires { known.span_ns; }) end += known.span_ns;
          // What ended earlier is not covered anyway.
          if (end > covered_from_ns_) outbox.Drop(1);
          return;
        }
        if constexpr (requires { known.waits_for; }) {
          if (!Describe(outbox, known.waits_for, now)) return;
        }
        if constexpr (requires { known.because_of; }) {
          if (!Describe(outbox, known.because_of, now)) known.because_of = 0;
        }
        outbox.Put(known);
      },
      event);
}

bool Remembered::Describe(RecordingOutbox& outbox, uint64_t id, TimePoint now) {
  if (described_.contains(id)) return true;
  std::optional<ipc::RecordedQueue> description;
  if (const Queue* queue = parts_.queues.Find(sched::QueueId{id})) {
    if (!MaySee(queue->agent->connection.peer.uid)) return false;
    description = parts_.reader.Describe(*queue, since_, now);
  } else if (const ipc::RecordedQueue* gone =
                 parts_.history.Description(sched::QueueId{id}, [&](uid_t uid) { return MaySee(uid); })) {
    description = *gone;
  }
  if (!description) return false;
  description->at_ns = 0;
  described_.insert(id);
  outbox.Put(*description);
  return true;
}

}  // namespace xsched::server
