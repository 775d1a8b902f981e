#include "sched/core/controls.h"

#include <algorithm>

#include "sched/core/accounting.h"

namespace xsched::sched {
namespace {

// In less time on the device, a queue that retires nothing may not even have begun to work.
constexpr Duration kChance = std::chrono::milliseconds(2);

// Is it the one that an operator wants to hear of: at work, more urgent, or earlier?
bool LeadsBefore(const QueueRecord& queue, const QueueRecord& other) {
  const bool works = queue.state == QueueState::kReady && !queue.process->off();
  const bool other_works = other.state == QueueState::kReady && !other.process->off();
  if (works != other_works) return works;
  if (queue.priority != other.priority) return queue.priority > other.priority;
  return queue.running_since < other.running_since;
}

// Of a queue that may run.
Charge ChargeOf(const QueueRecord& queue, bool running, bool off) {
  if (!running) return Charge::kNothing;
  if (off) return Charge::kWaiting;
  return queue.chosen ? Charge::kService : Charge::kGift;
}

// Has the queue, which is about to be held, been able to work since it was held before?
bool HadChance(const QueueRecord& queue, TimePoint now) {
  if (!queue.running || queue.held_since == kNever) return true;  // it has just become ready
  if (queue.let_run_by_gift) return false;
  return queue.retired != queue.retired_when_held || now - queue.running_since >= kChance;
}

void Report(QueueRecord& queue, bool watched, ControlSink& sink) {
  const DeviceRecord& device = *queue.device;
  Control control;
  control.run = queue.run;
  // Inherited urgency may hold a queue that the policy by itself would not.
  control.gated = !queue.run || (queue.can_be_held && !device.slices.replace_holding());
  control.sliced = control.gated && device.slices.cut_short() && !queue.held_by_own;
  control.tracked = control.gated || (queue.can_hold && !device.slices.replace_holding()) || queue.awaited ||
                    queue.wait_count != 0 || device.slices.beside_holding() || watched;
  if (control == queue.control) return;
  queue.holds += queue.control.run && !queue.run;
  queue.control = control;
  sink.SetControl(queue.id, control);
}

}  // namespace

TimePoint Controls::Apply(const Policy& policy, DeviceRecord& device, TimePoint now,
                          ControlSink& sink) const {
  device.held_since = kNever;
  TimePoint next = kNever;
  bool taken = false;
  for (QueueRecord* queue : device.queues) {
    if (queue->run) continue;
    if (queue->control.run && HadChance(*queue, now)) {
      queue->held_since = now;
      queue->retired_when_held = queue->retired;
    }
    queue->let_run_by_gift = true;
    device.held_since = std::min(device.held_since, queue->held_since);
    queue->running = false;
    SetCharge(*queue, Charge::kWaiting, now);
    Report(*queue, false, sink);
    taken |= queue->state == QueueState::kReady && !queue->absent;
    next = std::min(next, StepWatch(*queue, {}, now, sink));
  }
  if (device.held_since != kNever && LongHeld::From(device.held_since) > now)
    next = std::min(next, LongHeld::From(device.held_since));
  // Perhaps no queue is held, but processes are off the device.
  const bool silent = now >= device.silence.AskAt(config_);
  bool asked = false;
  const QueueRecord* leader = nullptr;
  for (QueueRecord* queue : device.queues) {
    if (queue->state == QueueState::kLingering) next = std::min(next, queue->pauses.IdleAt(config_.grace));
    if (!queue->run) continue;
    const TimePoint held_elsewhere = long_held_.ElsewhereSince(policy, *queue);
    TimePoint held_since = std::min(device.held_since, held_elsewhere);
    if (held_since == kNever && silent) held_since = device.silence.since();
    Report(*queue, held_elsewhere != kNever, sink);
    queue->let_run_by_gift &= !queue->chosen || queue->priority != queue->hints.priority;
    const bool running = queue->IsEligible();
    const bool off = running && queue->process->off();
    if (running && !queue->running) {
      queue->running_since = now;
      queue->watch.Resumed(now);
    }
    queue->running = running;
    SetCharge(*queue, ChargeOf(*queue, running, off), now);
    if (running && (leader == nullptr || LeadsBefore(*queue, *leader))) leader = queue;
    taken |= off && queue->state == QueueState::kReady;
    const bool works = running && !off && queue->state == QueueState::kReady;
    const Watch::Chance chance{.released = works && device.released_for.valid,
                               .watchable = works && queue->control.tracked && held_since != kNever,
                               .held_since = held_since};
    next = std::min(next, StepWatch(*queue, chance, now, sink));
    asked |= queue->watch.counting();
  }
  device.silence.Count(taken, asked, now);
  if (device.silence.AskAt(config_) > now) next = std::min(next, device.silence.AskAt(config_));
  next = std::min(next, device.silence.Until(config_));
  device.leader = leader == nullptr ? QueueId{} : leader->id;
  device.leader_claim = leader == nullptr ? Claim{} : ClaimOf(*leader);
  return next;
}

TimePoint Controls::StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                              ControlSink& sink) const {
  bool ask = false;
  const TimePoint next = queue.watch.Step(now, chance, config_, ask);
  if (ask) sink.Query(queue.id);
  return next;
}

}  // namespace xsched::sched
