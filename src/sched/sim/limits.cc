#include "sched/sim/limits.h"

#include <algorithm>

namespace xsched::sched::sim {
namespace {

std::string Microseconds(Duration duration) { return std::to_string(duration / microseconds(1)) + " us"; }

}  // namespace

void Limits::Hold(TimePoint from, Duration elapsed) {
  const TimePoint to = from + elapsed;
  for (const QueueModel& queue : queues_) {
    if (!queue.exists || (queue.hold && !queue.OnDevice())) continue;
    std::vector<Stretch>& stretches = stretches_[Index(queue.script->process)][Index(queue.script->device)];
    const TimePoint oldest = from - Longest() - kReservationPeriod;
    std::erase_if(stretches, [oldest](const Stretch& old) { return old.second < oldest; });
    if (!stretches.empty() && stretches.back().second >= from) {
      stretches.back().second = to;
    } else {
      stretches.emplace_back(from, to);
    }
  }
}

// The strictest limit that the queue's process has at any time.
Duration Limits::StrictestOf(const QueueScript& queue) const {
  Duration strictest = Duration::max();
  for (const QueueModel& other : queues_) {
    const QueueScript& script = *other.script;
    if (script.process != queue.process || script.device != queue.device || script.limit_us == 0) continue;
    strictest = std::min<Duration>(strictest, microseconds(script.limit_us));
  }
  return strictest;
}

Duration Limits::Longest() { return std::chrono::seconds(1) + kReservationPeriod; }

Duration Limits::LetRun(const QueueScript& queue, TimePoint since) const {
  Duration sum{};
  for (const auto& [from, to] : stretches_[Index(queue.process)][Index(queue.device)])
    sum += std::max(Duration::zero(), to - std::max(from, since));
  return sum;
}

std::string Limits::Check(size_t index, Duration limited_for, TimePoint now) {
  const bool before = std::exchange(used_up_[index], limited_for > Duration::zero());
  if (!used_up_[index]) return "";
  const std::string name = "queue " + std::to_string(index) + " has used up its limit ";
  const QueueScript& script = *queues_[index].script;
  const Duration longest = Longest();
  if (limited_for > longest) return name + "for " + Microseconds(limited_for) + " more";
  if (before) return "";
  // A turn is longer where a limit leaves it less than kShortestTurn, and a period before may have paid for
  // it. Commands that run on after a hold are charged until the client has said that they have ended.
  const Duration least = StrictestOf(script) / 2 - kShortestTurn;
  const Duration let_run = LetRun(script, now - longest - kReservationPeriod);
  if (let_run >= least) return "";
  return name + "though it was let run for " + Microseconds(let_run) + ", of " + Microseconds(least);
}

}  // namespace xsched::sched::sim
