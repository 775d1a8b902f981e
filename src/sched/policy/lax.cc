// Laxity: each queue has one priority until its laxity is used up, and another one after that. The queues of
// the highest priority run.
//
// For work that may wait, but not for too long: a video conference beside speech recognition, whose frames
// become urgent only when they are about to be late. Queues without a laxity have their usual priority, so
// LAX can do what HPF does.
//
// A laxity counts from the time at which the queue's oldest unfinished work came, as far as that is known
// (sched/core/requests.h).
//
// It fails where work with a laxity comes faster than it is done: it is always critical.
#include <algorithm>

#include "sched/core/highest_first.h"

namespace xsched::sched::lax {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyLaxity,
    .name = "LAX",
    .summary = "laxity: a queue's priority changes when it has waited for as long as it may",
    .hints = {.priority = true, .laxity = true},
    .sees_processes = true,
    .steady = true,
};

bool HasLaxity(const Hints& hints) { return hints.laxity_us >= 0; }

TimePoint CriticalAt(const QueueView& queue) {
  return queue.ready_since + std::chrono::microseconds(queue.hints.laxity_us);
}

Priority PriorityOf(const QueueView& queue, TimePoint now) {
  if (!HasLaxity(queue.hints)) return queue.priority;
  const Priority own = now >= CriticalAt(queue) ? queue.hints.critical_priority : queue.hints.lax_priority;
  // A more urgent queue may wait for it.
  return queue.priority > queue.hints.priority ? std::max(own, queue.priority) : own;
}

class Laxity final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    Priority highest = PRIORITY_NO_EXECUTE;
    TimePoint next = kNever;
    for (const QueueView& queue : device.ready) {
      highest = std::max(highest, PriorityOf(queue, device.now));
      if (HasLaxity(queue.hints) && CriticalAt(queue) > device.now) next = std::min(next, CriticalAt(queue));
    }
    for (QueueView& queue : device.ready) queue.run = PriorityOf(queue, device.now) == highest;
    return device.ready.size() > 1 ? next : kNever;
  }

  bool CanHold(const Hints& victim, const Hints& rival) const override {
    return Highest(rival) > Lowest(victim);
  }

  // When a laxity is used up, another process becomes the most urgent one, and slices take a millisecond to
  // change. So if any process has a laxity, only the processes that run are on the device.
  Division Divide(std::span<ProcessView> processes) const override {
    if (std::any_of(processes.begin(), processes.end(),
                    [](const ProcessView& process) { return HasLaxity(process.hints); })) {
      return AnyCanHold(processes) ? OnlyTheRunningOne(processes) : Division::kNone;
    }
    return SliceHighestFirst(processes, [](const ProcessView& process) { return process.priority; });
  }

 private:
  // A process may have queues with a laxity and others without one.
  static Priority Highest(const Hints& hints) {
    if (!HasLaxity(hints)) return hints.priority;
    return std::max({hints.priority, hints.lax_priority, hints.critical_priority});
  }
  static Priority Lowest(const Hints& hints) {
    if (!HasLaxity(hints)) return hints.priority;
    return std::min({hints.priority, hints.lax_priority, hints.critical_priority});
  }
  static bool AnyCanHold(std::span<const ProcessView> processes) {
    Priority highest = PRIORITY_NO_EXECUTE;
    Priority lowest = PRIORITY_MAX;
    for (const ProcessView& process : processes) {
      // Some of its queues may have no laxity.
      highest = std::max({highest, process.priority, Highest(process.hints)});
      lowest = std::min({lowest, process.priority, Lowest(process.hints)});
    }
    return highest > lowest;
  }
};

constinit const Laxity policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::lax
