#include "server/recording/queue_track.h"

#include <algorithm>
#include <utility>

#include "ipc/bursts.h"
#include "server/ended_bursts.h"

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

// So many bursts that ended between two looks at a queue that reports have a record of their own. It is for
// clients that write nonsense: there are two or three.
constexpr uint32_t kMostApart = 16;

// The first of `parts` equal parts of what was between two readings.
template <typename T>
T FirstPart(T from, T to, uint32_t parts) {
  return from + (std::max(from, to) - from) / parts;
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
  seen_at_ = now;
  seen_end_ = {!reading.busy() && reading.counted && reading.counted->goes_on, reading.retired};
  // What was launched before counts as launched now, because it retires in the recording.
  last_.submitted = last_.retired;
  if (reading.busy()) BeginBurst(now);
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
  const bool has_begun = HasBegun(reading);
  SeeCounted(reading, now, sink);
  SeeBusy(reading, has_begun, now, sink);
  SeeInFlight(reading, now, sink);
  seen_at_ = now;
}

// At the end of a burst there are none, which needs no record.
void QueueTrack::SeeInFlight(const Reading& reading, TimePoint now, RecordSink& sink) {
  if (!busy_ || now < count_at_) return;
  const uint64_t in_flight = Growth(reading.retired, reading.submitted);
  if (in_flight == in_flight_) return;
  in_flight_ = in_flight;
  count_at_ = now + kCountEvery;
  ipc::RecordedInFlight record{};
  record.queue_id = static_cast<uint64_t>(id_);
  record.at_ns = RecordedTime(began_, now);
  record.commands = in_flight;
  sink.Put(record);
}

void QueueTrack::SeeBusy(const Reading& reading, bool has_begun, TimePoint now, RecordSink& sink) {
  if (busy_) {
    // The client counts the end right after the last command's, or does not at all.
    const bool comes = !reading.busy() && reading.counted && last_.counted && !reading.reports;
    if (comes && !std::exchange(awaits_end_, true)) return;
    awaits_end_ = false;
    const bool cut = reading.busy() && now >= busy_since_ + kCutAfter && reading.retired > at_begin_.retired;
    if (!reading.busy() || cut) PutBurst(reading, now, cut ? ipc::kBurstCut : 0, sink);
    if (!reading.busy()) seen_end_ = {true, reading.retired};
    busy_ = reading.busy();
    last_ = reading;
    if (cut) {
      const TimePoint began = burst_began_;
      BeginBurst(now);
      burst_began_ = began;
      continues_ = true;
    }
    return;
  }
  if (reading.busy()) {
    BeginBurst(reading.counted && !reading.reports ? LastBegan(reading, now) : now);
  } else if (reading.retired > last_.retired) {
    BeginBurst(has_begun ? LastBegan(reading, now) : now);
    PutBurst(reading, now, has_begun ? 0 : ipc::kBurstUnseen, sink);
    seen_end_ = {true, reading.retired};
    busy_ = false;
  }
  last_ = reading;
}

// Its client has counted since the last reading that another burst has begun, and not yet its end.
bool QueueTrack::HasBegun(const Reading& reading) const {
  return reading.reports && reading.counted && last_.counted && reading.counted->goes_on &&
         reading.counted->began != last_.counted->began;
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

void QueueTrack::SeeCounted(const Reading& reading, TimePoint now, RecordSink& sink) {
  if (!reading.counted || !last_.counted) return;
  const EndedBursts ended =
      EndedSince(*last_.counted, *reading.counted, seen_at_, seen_end_, reading.retired);
  const bool is_late = !reading.reports && !busy_ && reading.retired == last_.retired;
  if (ended.count != 0 && !is_late) {
    awaits_end_ = false;
    if (reading.reports) {
      SeeEach(reading, ended, now, sink);
    } else {
      SeeFirstEnd(reading, ended, now, sink);
    }
  }
  last_.counted = reading.counted;
}

// They are one after another, and each one is charged for the same part of the time.
void QueueTrack::SeeEach(const Reading& reading, const EndedBursts& ended, TimePoint now, RecordSink& sink) {
  const std::optional<Duration> open_for = busy_ ? std::optional(seen_at_ - burst_began_) : std::nullopt;
  const BurstLengths lengths = LengthsOf(ended, open_for, now - seen_at_);
  const Duration sum = lengths.first + lengths.other * (ended.count - 1);
  TimePoint at = busy_ ? burst_began_ : std::max(now - sum, std::min(seen_at_, now));
  Duration length = lengths.first;
  for (uint32_t left = std::min(ended.count, kMostApart); left > 0; --left) {
    const Reading until = PartOf(reading, left);
    if (!busy_) BeginBurst(at);
    const uint32_t bursts = left == 1 ? ended.count - std::min(ended.count, kMostApart) + 1 : 1;
    at = std::max(at + length * bursts, busy_since_);
    PutBurst(until, at, 0, sink, bursts);
    busy_ = false;
    last_ = until;
    length = lengths.other;
  }
  ended_at_ = at;
}

// The reading at the end of the first of so many bursts, of which the last one ended before `reading`.
QueueTrack::Reading QueueTrack::PartOf(const Reading& reading, uint32_t bursts) const {
  Reading part = reading;
  part.service = FirstPart(last_.service, reading.service, bursts);
  part.waiting = FirstPart(last_.waiting, reading.waiting, bursts);
  part.retired = FirstPart(last_.retired, reading.retired, bursts);
  if (busy_ && bursts > 1) part.retired = std::min(last_.submitted, reading.retired);
  part.submitted = part.retired;
  return part;
}

// If several bursts have ended, and one went on at the last reading: as if it was read when this one had
// ended.
void QueueTrack::SeeFirstEnd(const Reading& reading, EndedBursts ended, TimePoint now, RecordSink& sink) {
  if (busy_ && ended.count > 1) {
    const BurstLengths lengths = LengthsOf(ended, seen_at_ - burst_began_, now - seen_at_);
    Reading first = reading;
    first.submitted = first.retired = std::min(last_.submitted, reading.retired);
    SeeEnded(first, {1, lengths.first}, burst_began_ + lengths.first, sink);
    --ended.count;
    ended.busy = lengths.other * ended.count;
  }
  SeeEnded(reading, ended, now, sink);
}

void QueueTrack::SeeEnded(const Reading& reading, const EndedBursts& ended, TimePoint now, RecordSink& sink) {
  const TimePoint latest = LastBegan(reading, now);
  // Only of the last one is it known when it began.
  if (!busy_) BeginBurst(ended.count == 1 && !reading.busy() ? latest : std::max(seen_at_, ended_at_));
  TimePoint end = reading.busy() ? latest : now;
  if (ended.count == 1 && ended.busy > Duration::zero() && ended.busy < now - burst_began_)
    end = burst_began_ + ended.busy;
  end = std::max(end, busy_since_);
  ipc::RecordedBurst burst = BurstUntil(reading, end);
  burst.bursts = ended.count;
  burst.service_ns =
      ended.count == 1 ? burst.span_ns : std::min(Growth(Duration::zero(), ended.busy), burst.span_ns);
  burst.flags = continues_ ? ipc::kBurstContinued : 0;
  sink.Put(burst);
  ended_at_ = end;
  busy_ = false;
  last_ = reading;
}

TimePoint QueueTrack::LastBegan(const Reading& reading, TimePoint now) const {
  return std::clamp(reading.counted->began, std::min(std::max(seen_at_, ended_at_), now), now);
}

void QueueTrack::BeginBurst(TimePoint began) {
  busy_ = true;
  continues_ = false;
  busy_since_ = burst_began_ = began;
  at_begin_ = last_;
  in_flight_ = 0;
  count_at_ = began + kCountEvery;
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

void QueueTrack::PutBurst(const Reading& reading, TimePoint now, uint32_t flags, RecordSink& sink,
                          uint32_t bursts) {
  ipc::RecordedBurst burst = BurstUntil(reading, now);
  burst.bursts = bursts;
  const bool was_alone = reading.counted && last_.counted && !reading.reports && !last_.reports;
  if (was_alone || bursts > 1) {  // nobody else had the device, or what others had is not known
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
