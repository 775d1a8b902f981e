#include "sched/core/overruns.h"

#include <algorithm>
#include <utility>

#include "sched/core/accounting.h"
#include "sched/core/active_queues.h"

namespace xsched::sched {
namespace {

// Each question wakes the client. An answer may come later by this part of the overrun: what others had of
// that time is charged to them when they report.
constexpr int kPartOfOverrun = 8;
constexpr Duration kLongestUnasked = std::chrono::milliseconds(5);

// A client that reports the end is asked again as well: a command that was just being launched may have come
// behind what it looked at for its answer, and then it has nothing to report. Without an end the queue would
// be charged for ever.
constexpr Duration kReporterAskedAgain = std::chrono::milliseconds(100);

// Where the client has to be asked, overruns of shorter commands are not worth the questions.
constexpr Duration kLongCommand = std::chrono::milliseconds(1);

// Others wait for the end of an overrun, except if the queue's overruns are usually shorter than this: then
// the change to the next queue would leave the device unused for a good part of that time.
constexpr Duration kWorthAwaiting = std::chrono::microseconds(500);
// They wait for several times as long as it usually takes.
constexpr int kTimesUsual = 3;
constexpr Duration kAwaitedAtLeast = std::chrono::milliseconds(20);
constexpr Duration kAwaitedAtMost = std::chrono::milliseconds(60);
// If one lasts for longer, the next ones of that queue probably do as well.
constexpr Duration kNotAwaited = std::chrono::seconds(1);

constexpr int kNewPart = 4;  // of `usual`: a fourth of it is the latest one

bool StillOverruns(const DeviceRecord& device) {
  return std::any_of(device.active.begin(), device.active.end(),
                     [](const QueueRecord* queue) { return queue->overruns; });
}

bool Overran(const QueueRecord& queue, TimePoint since, TimePoint now) {
  return queue.overrun.since < now && (queue.overruns || queue.overrun.ended_at > since);
}

// Charges the queue for what its commands had of this time, and not the queue that it was behind of.
Duration TakeCharge(QueueRecord& queue, uint64_t count, Duration received, Duration uncharged,
                    TimePoint now) {
  if (uncharged == Duration::zero() || !queue.pace.known()) return Duration::zero();
  QueueRecord* charged = queue.device->Find(queue.behind_of);
  if (charged == nullptr) return Duration::zero();
  const Duration taken = std::clamp(queue.pace.Of(count) - received, Duration::zero(), uncharged);
  if (taken == Duration::zero()) return taken;
  Activate(*charged);  // what inactive queues have received is added up already
  queue.service += taken;
  charged->service -= taken;
  charged->overrun.alone_since = now;
  // It has reported what it did of the overrun.
  if (!charged->overruns) charged->service_when_retired -= taken;
  return taken;
}

// The queue was charged for so much of an overrun that its commands do not account for. If those behind it do
// not account for it either, commands of theirs take longer than was known: most likely the longest ones.
void LengthenThoseBehind(QueueRecord& queue, Duration unaccounted) {
  if (!std::exchange(queue.others_unclaimed, false)) return;
  QueueRecord* longest = nullptr;
  Duration unclaimed{};
  for (QueueRecord* other : queue.device->active) {
    if (other->behind_of != queue.id) continue;
    const Duration of_other = std::exchange(other->unclaimed, Duration::zero());
    if (longest != nullptr && other->pace.Of(1) <= longest->pace.Of(1)) continue;
    longest = other;
    unclaimed = of_other;
  }
  if (longest != nullptr && unaccounted > Duration::zero())
    longest->pace.Lengthen(std::min(unclaimed, unaccounted));
}

void MeasureOverrun(QueueRecord& queue, TimePoint now) {
  Duration& usual = queue.overrun.usual;
  const Duration length = std::max(now - queue.overrun.since, Duration(1));
  usual = usual == Duration::zero() ? length : usual + (length - usual) / kNewPart;
}

// As far as is known.
bool HasLongCommands(const QueueRecord& queue) {
  if (queue.pace.known()) return queue.pace.Of(1) > kLongCommand;
  return ServiceOf(queue) - queue.service_when_retired > kLongCommand;
}

}  // namespace

void BeginOverrun(QueueRecord& queue, TimePoint now, const SchedulerConfig& config, ControlSink& sink) {
  queue.overrun.asked_at = now;
  queue.overrun.at_most = std::min(ServiceOf(queue) - queue.service_when_retired, config.timeslice);
  queue.overrun.seen = false;
  // The device may have nothing of it at this moment. Then the client has nothing to report by itself.
  sink.Query(queue.id);
}

void AskOverrun(QueueRecord& queue, TimePoint now, const SchedulerConfig& config, ControlSink& sink) {
  const auto next = [&] {
    if (queue.traits.reports_overruns) return queue.overrun.asked_at + kReporterAskedAgain;
    const Duration so_far = queue.overrun.asked_at - queue.overrun.since;
    return queue.overrun.asked_at + std::clamp(so_far / kPartOfOverrun, config.query_after,
                                               std::max(config.query_after, kLongestUnasked));
  };
  if (now >= next()) {
    queue.overrun.asked_at = now;
    sink.Query(queue.id);
  }
  queue.device->ask_at = std::min(queue.device->ask_at, next());
}

void AskBehind(QueueRecord& queue, TimePoint now, ControlSink& sink) {
  if (now >= queue.overrun.asked_at + kLongestUnasked) {
    queue.overrun.asked_at = now;
    sink.Query(queue.id);
  }
  queue.device->ask_at = std::min(queue.device->ask_at, queue.overrun.asked_at + kLongestUnasked);
}

bool MayOverrun(const QueueRecord& queue) {
  return queue.Unfinished() && (queue.traits.reports_overruns || HasLongCommands(queue));
}

bool OverrunIsAwaited(QueueRecord& queue, TimePoint now, TimePoint& until) {
  const TimePoint since = queue.overruns ? queue.overrun.since : now;
  const Duration usual = queue.overrun.usual;
  const bool is_short = usual != Duration::zero() && usual < kWorthAwaiting;
  if (is_short || since < queue.overrun.awaited_again_at) return false;
  until = since + std::clamp(kTimesUsual * usual, kAwaitedAtLeast, kAwaitedAtMost);
  if (now < until) return true;
  queue.overrun.awaited_again_at = now + kNotAwaited;
  return false;
}

TimePoint OverrunEnds(const QueueRecord& queue, const SchedulerConfig& config) {
  if (queue.traits.reports_overruns) return kNever;
  if (!queue.pace.known()) return queue.overrun.since + queue.overrun.at_most;
  return queue.overrun.since + queue.pace.Of(2) + config.query_after;
}

void EndOverrun(QueueRecord& queue, TimePoint now) {
  if (!queue.overruns) return;
  MeasureOverrun(queue, now);
  SetOverruns(queue, false, now);
  SetCharge(queue, Charge::kWaiting, now);
  DeviceRecord& device = *queue.device;
  device.dirty = true;
  if (StillOverruns(device)) return;
  for (QueueRecord* other : device.active) {
    if (other->charge == Charge::kBehind) SetCharge(*other, Charge::kService, now);
  }
}

void SeeOverrun(QueueRecord& queue, uint64_t retired, TimePoint now) {
  if (!queue.overruns || queue.traits.reports_overruns) return;
  // It was not known before how short its commands are.
  if (queue.pace.known() && queue.pace.Of(1) <= kLongCommand) return EndOverrun(queue, now);
  // The first report shows what had retired when it was held.
  if (!std::exchange(queue.overrun.seen, true)) {
    queue.overrun.retired = retired;
  } else if (retired != queue.overrun.retired) {
    EndOverrun(queue, now);
  }
}

void ChargeForRetired(QueueRecord& queue, uint64_t count, TimePoint now) {
  Account(*queue.device, now);
  if (queue.charge == Charge::kBehind) {
    queue.behind += BehindSince(queue, now);
    queue.waiting_mark = now;
  }
  const TimePoint since = std::exchange(queue.retired_at, now);
  const bool was_behind = queue.behind != Duration::zero();
  const Duration uncharged =
      std::exchange(queue.behind, Duration::zero()) + std::exchange(queue.partly, Duration::zero());
  const Duration received = ServiceOf(queue) - queue.service_when_retired;
  const Duration taken = TakeCharge(queue, count, received, uncharged, now);
  if (was_behind) {
    queue.partly = std::min(uncharged - taken, queue.pace.Of(1));
    queue.unclaimed += uncharged - taken - queue.partly;
    QueueRecord* charged =
        queue.unclaimed == Duration::zero() ? nullptr : queue.device->Find(queue.behind_of);
    if (charged != nullptr) charged->others_unclaimed = true;
  }
  // It may have begun one command more.
  if (queue.pace.known() && Overran(queue, since, now))
    LengthenThoseBehind(queue, received - queue.pace.Of(count + 1));
  // Between several commands of an overrun, those of others may have run. The first command may have begun
  // before that time, and one may go on after it: on average, that is the same. What it had while it was
  // behind comes on top of what it received.
  const bool is_alone = count == 1 || !Overran(queue, since, now);
  if (is_alone && (!was_behind || received > queue.pace.Of(count))) queue.pace.Measure(received, count);
  queue.service_when_retired = ServiceOf(queue);
}

}  // namespace xsched::sched
