#include "server/queue_track.h"

#include <algorithm>

namespace xsched::server {
namespace {

// More than a device retires in a recording: a client that writes nonsense must not spoil the file.
constexpr uint64_t kMostCommands = uint64_t{1} << 48;
// Charges change at decisions, which come a little after what they are about.
constexpr Duration kInexact = std::chrono::microseconds(20);

uint64_t Growth(uint64_t from, uint64_t to) { return to > from ? std::min(to - from, kMostCommands) : 0; }

uint64_t Growth(Duration from, Duration to) {
  return static_cast<uint64_t>(std::max(to - from, Duration::zero()).count());
}

}  // namespace

QueueTrack::QueueTrack(sched::QueueId id, TimePoint began, const Reading& reading, bool reported,
                       TimePoint now)
    : id_(id), began_(began), last_(reading), reported_(reported || !reading.busy()) {
  if (reported_) Start(reading, now);
}

void QueueTrack::Start(const Reading& reading, TimePoint now) {
  last_ = reading;
  // What was launched before counts as launched now, because it retires in the recording.
  last_.submitted = last_.retired;
  if (reading.busy()) BeginBurst(reading, now);
  held_ = reading.busy() && reading.held;
  held_since_ = now;
  last_ = reading;
}

uint64_t QueueTrack::Since(TimePoint time) const {
  return static_cast<uint64_t>(std::max(time - began_, Duration::zero()).count());
}

void QueueTrack::See(const Reading& reading, TimePoint now, RecordSink& sink) {
  if (!reported_) {
    reported_ = reading.retired != last_.retired;
    if (reported_) Start(reading, now);
    return;
  }
  SeeHold(reading.busy() && reading.held, now, sink);
  SeeWait(reading, now, sink);
  if (busy_) {
    const bool cut = reading.busy() && now >= busy_since_ + kCutAfter && reading.retired > at_begin_.retired;
    if (!reading.busy() || cut) PutBurst(reading, now, cut ? ipc::kBurstCut : 0, sink);
    busy_ = reading.busy();
    last_ = reading;
    if (cut) {
      BeginBurst(reading, now);
      continues_ = true;
    }
    return;
  }
  if (reading.busy()) {
    BeginBurst(reading, now);
  } else if (reading.retired > last_.retired) {
    BeginBurst(reading, now);
    PutBurst(reading, now, ipc::kBurstUnseen, sink);
    busy_ = false;
  }
  last_ = reading;
}

void QueueTrack::Finish(const Reading& reading, TimePoint now, RecordSink& sink) {
  See(reading, now, sink);
  SeeHold(false, now, sink);
  if (busy_ && now > busy_since_) PutBurst(reading, now, ipc::kBurstCut, sink);
  busy_ = false;
}

void QueueTrack::SeeHold(bool held, TimePoint now, RecordSink& sink) {
  if (held == held_) return;
  held_ = held;
  if (held) {
    held_since_ = now;
    return;
  }
  ipc::RecordedHold hold{};
  hold.queue_id = static_cast<uint64_t>(id_);
  hold.at_ns = Since(held_since_);
  hold.span_ns = Growth(held_since_ - TimePoint(), now - TimePoint());
  sink.Put(hold);
}

void QueueTrack::SeeWait(const Reading& reading, TimePoint now, RecordSink& sink) {
  const sched::Dependency& waits_for = reading.waits_for;
  if (waits_for.queue == waited_for_.queue && waits_for.until == waited_for_.until) return;
  waited_for_ = waits_for;
  if (waits_for.until == 0) return;
  ipc::RecordedWait wait{};
  wait.queue_id = static_cast<uint64_t>(id_);
  wait.at_ns = Since(now);
  wait.waits_for = static_cast<uint64_t>(waits_for.queue);
  wait.until = waits_for.until;
  sink.Put(wait);
}

void QueueTrack::BeginBurst(const Reading& reading, TimePoint now) {
  busy_ = true;
  continues_ = false;
  busy_since_ = now;
  at_begin_ = reading;
  at_begin_.submitted = last_.submitted;
  at_begin_.retired = last_.retired;
}

void QueueTrack::PutBurst(const Reading& reading, TimePoint now, uint32_t flags, RecordSink& sink) {
  ipc::RecordedBurst burst{};
  burst.queue_id = static_cast<uint64_t>(id_);
  burst.at_ns = Since(busy_since_);
  burst.span_ns = Growth(busy_since_ - TimePoint(), now - TimePoint());
  burst.launched = Growth(at_begin_.submitted, reading.submitted);
  burst.retired = Growth(at_begin_.retired, reading.retired);
  // A client's nonsense cannot make the time longer than it was, but a late decision may.
  burst.service_ns = std::min(Growth(at_begin_.service, reading.service), burst.span_ns);
  burst.waiting_ns = std::min(Growth(at_begin_.waiting, reading.waiting), burst.span_ns);
  const auto inexact = std::max<uint64_t>(burst.span_ns / 50, Growth(Duration::zero(), kInexact));
  const bool shared = burst.service_ns + burst.waiting_ns + inexact < burst.span_ns;
  burst.flags = flags | (shared ? ipc::kBurstShared : 0) | (continues_ ? ipc::kBurstContinued : 0);
  sink.Put(burst);
}

}  // namespace xsched::server
