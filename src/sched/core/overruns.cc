#include "sched/core/overruns.h"

#include <algorithm>
#include <utility>

#include "sched/core/accounting.h"

namespace xsched::sched {
namespace {

// The report may be missed: a command that was just being launched may have come behind what the client
// looked at for its answer. Without an end the queue would be charged for ever.
constexpr Duration kAskedAgain = std::chrono::milliseconds(100);

// Others wait for the end of an overrun, except if the queue's overruns are usually shorter than this: then
// the change to the next queue would leave the device unused for a good part of that time.
constexpr Duration kWorthAwaiting = std::chrono::microseconds(500);
// They wait for several times as long as it usually takes.
constexpr int kTimesUsual = 3;
constexpr Duration kAwaitedAtLeast = std::chrono::milliseconds(20);
constexpr Duration kAwaitedAtMost = std::chrono::milliseconds(60);
// If one lasts for longer, the next ones of that queue probably do as well.
constexpr Duration kNotAwaited = std::chrono::seconds(1);

// Few commands take longer, but a client may hang, and never report.
constexpr Duration kChargedAtMost = std::chrono::seconds(10);

constexpr int kForgottenPart = 4;  // of how much longer than the latest one `usual` is

bool IsShort(const QueueRecord& queue) {
  return queue.overrun.usual != Duration::zero() && queue.overrun.usual < kWorthAwaiting;
}

// If its overruns are usually so short that others do not wait for them, what is left of one after that time
// waits for the commands of the others.
TimePoint ChargedUntil(const QueueRecord& queue) {
  return queue.overrun.since + (IsShort(queue) ? kWorthAwaiting : kChargedAtMost);
}

}  // namespace

void BeginOverrun(QueueRecord& queue, TimePoint now, ControlSink& sink) {
  queue.overruns = true;
  queue.overrun.since = queue.overrun.asked_at = now;
  // The device may have nothing of it at this moment. Then the client has nothing to report by itself.
  sink.Query(queue.id);
}

void StepOverrun(QueueRecord& queue, TimePoint now, ControlSink& sink) {
  // More and more seldom: for each question, the client looks closely at first.
  const auto next = [&overrun = queue.overrun] {
    return overrun.asked_at + std::max(kAskedAgain, overrun.asked_at - overrun.since);
  };
  if (now >= next()) {
    queue.overrun.asked_at = now;
    sink.Query(queue.id);
  }
  TimePoint& step_at = queue.device->ask_at;
  step_at = std::min(step_at, next());
  const TimePoint charged_until = ChargedUntil(queue);
  const bool charged = now < charged_until;
  SetCharge(queue, charged ? Charge::kService : Charge::kWaiting, now);
  if (charged) step_at = std::min(step_at, charged_until);
}

bool MayOverrun(const QueueRecord& queue) { return queue.traits.reports_overruns && queue.Unfinished(); }

bool OverrunIsAwaited(QueueRecord& queue, TimePoint now, TimePoint& until) {
  const TimePoint since = queue.overruns ? queue.overrun.since : now;
  if (IsShort(queue) || since < queue.overrun.awaited_again_at) return false;
  until = since + std::clamp(kTimesUsual * queue.overrun.usual, kAwaitedAtLeast, kAwaitedAtMost);
  if (now < until) return true;
  queue.overrun.awaited_again_at = now + kNotAwaited;
  return false;
}

void EndOverrun(QueueRecord& queue, TimePoint now) {
  if (!queue.overruns) return;
  // One may be short by chance. So a longer one counts at once, and a shorter one little by little.
  Duration& usual = queue.overrun.usual;
  const Duration length = std::max(now - queue.overrun.since, Duration(1));
  usual = std::max(length, usual - (usual - length) / kForgottenPart);
  queue.overruns = false;
  SetCharge(queue, Charge::kWaiting, now);
}

void LeaveOverrun(QueueRecord& queue, TimePoint now) {
  if (std::exchange(queue.overruns, false))
    queue.overrun.usual = std::max(queue.overrun.usual, now - queue.overrun.since);
}

}  // namespace xsched::sched
