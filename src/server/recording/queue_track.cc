#include "server/recording/queue_track.h"

#include <algorithm>
#include <utility>

#include "ipc/bursts.h"

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

QueueTrack::QueueTrack(sched::QueueId id, TimePoint began, const Reading& reading, Before before,
                       TimePoint now)
    : id_(id),
      began_(began),
      last_(reading),
      before_(reading.busy() ? before : Before::kReported),
      seen_at_(now) {
  if (before_ != Before::kSkip) Start(reading, now);
}

void QueueTrack::Start(const Reading& reading, TimePoint now) {
  last_ = reading;
  // What was launched before counts as launched now, because it retires in the recording.
  last_.submitted = last_.retired;
  if (reading.busy()) BeginBurst(reading, now);
  continues_ = busy_ && before_ == Before::kTime;
  hold_ = HoldOf(reading);
  held_since_ = now;
  last_ = reading;
}

bool QueueTrack::SeeFirstReport(const Reading& reading, TimePoint now) {
  if (reading.retired == last_.retired) return before_ != Before::kSkip;
  if (std::exchange(before_, Before::kReported) == Before::kSkip) {
    Start(reading, now);
    return false;
  }
  at_begin_.submitted = at_begin_.retired = reading.retired;
  return true;
}

void QueueTrack::See(const Reading& reading, TimePoint now, RecordSink& sink) {
  if (before_ != Before::kReported && !SeeFirstReport(reading, now)) return;
  SeeHold(HoldOf(reading), now, sink);
  SeeWait(reading, now, sink);
  if (reading.counted && last_.counted && reading.counted->ended != last_.counted->ended)
    SeeEnded(reading, now, sink);
  SeeBusy(reading, now, sink);
  seen_at_ = now;
}

void QueueTrack::SeeBusy(const Reading& reading, TimePoint now, RecordSink& sink) {
  if (busy_) {
    // The client counts the end right after the last command's, or does not at all.
    const bool comes = !reading.busy() && reading.counted && last_.counted;
    if (comes && !std::exchange(awaits_end_, true)) return;
    awaits_end_ = false;
    const bool cut = reading.busy() && now >= busy_since_ + kCutAfter && reading.retired > at_begin_.retired;
    if (!reading.busy() || cut) PutBurst(reading, now, cut ? ipc::kBurstCut : 0, sink);
    busy_ = reading.busy();
    last_ = reading;
    if (cut) {
      const TimePoint began = burst_began_;
      BeginBurst(reading, now);
      burst_began_ = began;
      continues_ = true;
    }
    return;
  }
  if (reading.busy()) {
    BeginBurst(reading, reading.counted ? LastBegan(reading, now) : now);
  } else if (reading.retired > last_.retired) {
    BeginBurst(reading, now);
    PutBurst(reading, now, ipc::kBurstUnseen, sink);
    busy_ = false;
  }
  last_ = reading;
}

void QueueTrack::Finish(const Reading& reading, TimePoint now, RecordSink& sink) {
  See(reading, now, sink);
  SeeHold({}, now, sink);
  // A client that counts bursts says at the end of one that it has ended, and reports later what has retired.
  const bool any =
      continues_ || reading.submitted > at_begin_.submitted || reading.retired > at_begin_.retired;
  if (busy_ && any && now > busy_since_) PutBurst(reading, now, ipc::kBurstCut, sink);
  busy_ = false;
}

QueueTrack::Hold QueueTrack::HoldOf(const Reading& reading) {
  // A stalled queue may run.
  const bool runs = reading.why == sched::WaitReason::kNone || reading.why == sched::WaitReason::kStalled;
  return reading.busy() && !runs ? Hold{reading.why, reading.because_of} : Hold{};
}

void QueueTrack::SeeHold(const Hold& hold, TimePoint now, RecordSink& sink) {
  if (hold == hold_) return;
  const Hold former = std::exchange(hold_, hold);
  const TimePoint since = std::exchange(held_since_, now);
  if (former == Hold{}) return;
  ipc::RecordedHold record{};
  record.queue_id = static_cast<uint64_t>(id_);
  record.at_ns = RecordedTime(began_, since);
  record.span_ns = Growth(since - TimePoint(), now - TimePoint());
  record.because_of = static_cast<uint64_t>(former.because_of);
  record.why = static_cast<uint32_t>(former.why);
  sink.Put(record);
}

void QueueTrack::SeeWait(const Reading& reading, TimePoint now, RecordSink& sink) {
  const sched::Dependency& waits_for = reading.waits_for;
  if (waits_for.queue == waited_for_.queue && waits_for.until == waited_for_.until) return;
  waited_for_ = waits_for;
  if (waits_for.until == 0) return;
  ipc::RecordedWait wait{};
  wait.queue_id = static_cast<uint64_t>(id_);
  wait.at_ns = RecordedTime(began_, now);
  wait.waits_for = static_cast<uint64_t>(waits_for.queue);
  wait.until = waits_for.until;
  sink.Put(wait);
}

void QueueTrack::SeeEnded(const Reading& reading, TimePoint now, RecordSink& sink) {
  awaits_end_ = false;
  if (!busy_ && reading.retired == last_.retired) {
    last_ = reading;
    return;
  }
  const uint32_t ended = std::min(reading.counted->ended - last_.counted->ended, ipc::kMostBursts);
  const Duration busy = std::max(reading.counted->busy - last_.counted->busy, Duration::zero());
  const TimePoint latest = LastBegan(reading, now);
  // Only of the last one is it known when it began.
  if (!busy_) BeginBurst(reading, ended == 1 && !reading.busy() ? latest : seen_at_);
  TimePoint end = reading.busy() ? latest : now;
  if (ended == 1 && busy > Duration::zero() && busy < now - burst_began_) end = burst_began_ + busy;
  end = std::max(end, busy_since_);
  ipc::RecordedBurst burst = BurstUntil(reading, end);
  burst.bursts = ended;
  burst.service_ns = ended == 1 ? burst.span_ns : std::min(Growth(Duration::zero(), busy), burst.span_ns);
  burst.flags = continues_ ? ipc::kBurstContinued : 0;
  sink.Put(burst);
  ended_at_ = end;
  busy_ = false;
  last_ = reading;
}

TimePoint QueueTrack::LastBegan(const Reading& reading, TimePoint now) const {
  return std::clamp(reading.counted->began, std::min(std::max(seen_at_, ended_at_), now), now);
}

void QueueTrack::BeginBurst(const Reading& reading, TimePoint began) {
  busy_ = true;
  continues_ = false;
  busy_since_ = burst_began_ = began;
  at_begin_ = reading;
  at_begin_.submitted = last_.submitted;
  at_begin_.retired = last_.retired;
}

ipc::RecordedBurst QueueTrack::BurstUntil(const Reading& reading, TimePoint end) const {
  ipc::RecordedBurst burst{};
  burst.queue_id = static_cast<uint64_t>(id_);
  burst.at_ns = RecordedTime(began_, busy_since_);
  burst.span_ns = Growth(busy_since_ - TimePoint(), end - TimePoint());
  burst.launched = Growth(at_begin_.submitted, reading.submitted);
  burst.retired = Growth(at_begin_.retired, reading.retired);
  return burst;
}

void QueueTrack::PutBurst(const Reading& reading, TimePoint now, uint32_t flags, RecordSink& sink) {
  ipc::RecordedBurst burst = BurstUntil(reading, now);
  if (reading.counted && last_.counted) {  // nobody else had the device
    burst.service_ns = burst.span_ns;
  } else {
    // A client's nonsense cannot make the time longer than it was, but a late decision may.
    burst.service_ns = std::min(Growth(at_begin_.service, reading.service), burst.span_ns);
    burst.waiting_ns = std::min(Growth(at_begin_.waiting, reading.waiting), burst.span_ns);
  }
  const auto inexact = std::max<uint64_t>(burst.span_ns / 50, Growth(Duration::zero(), kInexact));
  const bool shared = burst.service_ns + burst.waiting_ns + inexact < burst.span_ns;
  burst.flags = flags | (shared ? ipc::kBurstShared : 0) | (continues_ ? ipc::kBurstContinued : 0);
  sink.Put(burst);
}

}  // namespace xsched::server
