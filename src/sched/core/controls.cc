#include "sched/core/controls.h"

#include <algorithm>

#include "sched/core/accounting.h"
#include "sched/core/active_queues.h"
#include "sched/core/overruns.h"

namespace xsched::sched {
namespace {

// A queue that retired nothing in less time than this may not even have begun to work.
constexpr Duration kChance = std::chrono::milliseconds(2);
// While turns are shorter than this, running queues are not asked for their progress.
constexpr Duration kShortOff = std::chrono::milliseconds(10);

// Which of two running queues is shown as the one that others wait for: one at work, then the more urgent
// one, then the one that runs for longer.
bool LeadsBefore(const QueueRecord& queue, const QueueRecord& other, Granularity by) {
  const bool works = queue.state == QueueState::kReady && !queue.process->off();
  const bool other_works = other.state == QueueState::kReady && !other.process->off();
  if (works != other_works) return works;
  if (PriorityFor(queue, by) != PriorityFor(other, by))
    return PriorityFor(queue, by) > PriorityFor(other, by);
  return queue.running_since < other.running_since;
}

// What the time of a queue that may run is accounted as.
Charge ChargeOf(const QueueRecord& queue, bool running, bool off) {
  if (!running) return Charge::kNothing;
  if (off) return Charge::kWaiting;
  if (!queue.chosen) return queue.device->asks && queue.runs_for_own ? Charge::kLent : Charge::kGift;
  return Charge::kService;
}

// Each question wakes the client, and the scheduler for the answer. That took 10 % of two cores from programs
// with kernels of 1.3 ms (PoCL). Where shares are exact only over many slices, the end of the queue's work
// may become known later, by an eighth of the time that it took.
constexpr Duration kLongestAskAfter = std::chrono::milliseconds(5);
Duration AskAfter(const QueueRecord& queue, TimePoint now, const SchedulerConfig& config) {
  if (!queue.control.keeps_busy) return config.query_after;
  return std::clamp((now - queue.ready_since) / 8, config.query_after, kLongestAskAfter);
}

// `held_since`: since when a queue is held that may do what this one waits for.
Watch::Chance ChanceOf(const QueueRecord& queue, TimePoint held_since, TimePoint now,
                       const SchedulerConfig& config) {
  const bool works = queue.running && !queue.process->off() && queue.state == QueueState::kReady;
  // In a window, policies decide while a queue has a better claim. One that runs then runs alone, for another
  // queue that waits for it.
  return {.released = works && queue.device->released_for.valid && !queue.device->asks,
          .watchable = works && queue.control.tracked && held_since != kNever,
          .held_since = held_since,
          .ask_after = AskAfter(queue, now, config)};
}

// The queue is about to be held. Could it work since it was held before?
bool HadChance(const QueueRecord& queue, TimePoint now) {
  if (!queue.running || queue.held_since == kNever) return true;  // it has just become ready
  if (queue.let_run_by_gift) return false;
  return queue.retired != queue.retired_when_held || now - queue.running_since >= kChance;
}

// The queue may not run. Does the device still have something of it, for which it is charged?
bool Overruns(const QueueRecord& queue) {
  const bool newly_held = queue.control.run;
  if (newly_held) return queue.running && MayOverrun(queue);
  return queue.overruns && queue.IsEligible();
}

// Those that the policy lets begin wait until the device has nothing more of those that it holds. Returns
// when they begin all the same. One that has just become ready has an open gate, and begins. So does one of a
// process that the device lets run beside the others.
TimePoint AwaitOverruns(DeviceRecord& device, TimePoint now) {
  TimePoint until = kNever;
  bool all_wait = false;
  for (QueueRecord* queue : device.active) {
    // Not for one that waits for one of them.
    if (queue->run || queue->wait_count != 0) continue;
    TimePoint its_end;
    if (!Overruns(*queue) || !OverrunIsAwaited(*queue, now, its_end)) continue;
    device.awaited = queue;
    until = std::min(until, its_end);
    all_wait |= !queue->traits.runs_beside_others;
    queue->process->awaited_at = now;
  }
  if (device.awaited == nullptr) return kNever;
  for (QueueRecord* queue : device.active) {
    const bool begins = queue->run && !queue->control.run;
    if (!begins || !queue->chosen) continue;
    if (!all_wait && queue->traits.runs_beside_others && queue->process->awaited_at != now) continue;
    queue->run = queue->chosen = false;
    device.awaits = queue;
  }
  if (device.awaits == nullptr) device.awaited = nullptr;
  return device.awaits == nullptr ? kNever : until;
}

// Since when a process with work is off the device. kNever: none is.
TimePoint OffSince(const DeviceRecord& device) {
  TimePoint since = kNever;
  if (!device.slices.beside_holding()) return since;
  for (const QueueRecord* queue : device.active) {
    if (queue->run && !queue->absent && queue->state == QueueState::kReady && queue->process->off())
      since = std::min(since, queue->process->off_since);
  }
  return since;
}

void Report(QueueRecord& queue, const ControlInputs& inputs, bool watched, ControlSink& sink) {
  Control control;
  control.run = queue.run;
  // Inherited urgency may hold a queue that the policy alone would not hold.
  control.gated = !queue.run || (queue.rivalry.can_be_held && !inputs.replace_holding);
  control.sliced = control.gated && inputs.cut_short && !queue.rivalry.held_by_own;
  control.charges_overruns = control.gated && inputs.charges_overruns && queue.traits.reports_overruns;
  control.keeps_busy = control.charges_overruns && inputs.keeps_busy;
  control.tracked = control.gated || (queue.rivalry.can_hold && !inputs.replace_holding) || queue.awaited ||
                    queue.wait_count != 0 || inputs.beside_holding || inputs.shared || watched;
  if (control == queue.control) return;
  queue.holds += queue.control.run && !queue.run;
  queue.control = control;
  sink.SetControl(queue.id, control);
}

// The controls of idle queues change only with these.
void ActivateIfChanged(DeviceRecord& device, const ControlInputs& inputs) {
  if (inputs.held_elsewhere || inputs != device.control_inputs) ActivateAll(device);
  device.control_inputs = inputs;
}

}  // namespace

TimePoint Controls::Apply(const PolicySetting& setting, DeviceRecord& device, TimePoint now,
                          ControlSink& sink) const {
  const Granularity by = setting.layers()[0].by;
  // A process that is off the device overruns nothing.
  const ControlInputs inputs{.charges_overruns = setting.ChargesOverruns() && !device.slices.beside_holding(),
                             .keeps_busy = setting.KeepsBusy(),
                             .replace_holding = device.slices.replace_holding(),
                             .beside_holding = device.slices.beside_holding(),
                             .cut_short = device.slices.cut_short(),
                             .held_elsewhere = long_held_.any(),
                             .shared = device.tenants.size() > 1};
  ActivateIfChanged(device, inputs);
  BeginWatches(device);
  device.held_since = kNever;
  device.taken = false;
  device.awaited = device.awaits = nullptr;
  TimePoint next = inputs.charges_overruns && device.asks ? AwaitOverruns(device, now) : kNever;
  for (QueueRecord* queue : device.active) {
    if (queue->run) continue;
    if (queue->control.run && HadChance(*queue, now)) {
      queue->held_since = now;
      queue->retired_when_held = queue->retired;
    }
    queue->let_run_by_gift = true;
    const bool newly_held = queue->control.run;
    const bool overruns = inputs.charges_overruns && Overruns(*queue);
    if (!overruns) LeaveOverrun(*queue, now);
    queue->running = false;
    SetChosen(*queue, false, now);
    Report(*queue, inputs, false, sink);
    if (overruns) {
      if (newly_held) BeginOverrun(*queue, now, sink);
      StepOverrun(*queue, now, sink);
    } else {
      SetCharge(*queue, Charge::kWaiting, now);
    }
    if (queue->limited) {
      // Nobody else makes it wait, so the watchdog has nothing to give back.
      next = std::min(next, queue->limited_until);
    } else {
      device.held_since = std::min(device.held_since, queue->held_since);
      device.taken |= queue->state == QueueState::kReady && !queue->absent;
    }
    StepWatch(*queue, {}, now, sink);
  }
  if (device.held_since != kNever && LongHeld::From(device.held_since) > now)
    next = std::min(next, LongHeld::From(device.held_since));
  // A process that is off the device for long counts like a held queue: a running queue may wait for it.
  const TimePoint off_since = OffSince(device);
  const bool off_long = off_since != kNever && now >= off_since + kShortOff;
  if (off_since != kNever && !off_long) next = std::min(next, off_since + kShortOff);
  const QueueRecord* leader = nullptr;
  bool any_idle = false;  // in most decisions none has become idle
  for (QueueRecord* queue : device.active) {
    any_idle |= queue->state == QueueState::kIdle;
    if (queue->state == QueueState::kLingering)
      next = std::min(next, queue->pauses.IdleAt(GraceOf(*queue, config_)));
    if (!queue->run) continue;
    if (LeavesGaps(*queue, now)) next = std::min(next, queue->launches.until());
    const TimePoint held_elsewhere = long_held_.ElsewhereSince(setting, *queue);
    TimePoint held_since = std::min(device.held_since, held_elsewhere);
    if (off_long) held_since = std::min(held_since, off_since);
    Report(*queue, inputs, held_elsewhere != kNever, sink);
    queue->let_run_by_gift &= !queue->chosen || InheritsPriority(*queue, by);
    LeaveOverrun(*queue, now);
    const bool running = queue->IsEligible();
    const bool off = running && queue->process->off();
    if (running && !queue->running) {
      queue->running_since = now;
      queue->watch.Resumed(now);
    }
    queue->running = running;
    SetChosen(*queue, running && queue->chosen, now);
    SetCharge(*queue, ChargeOf(*queue, running, off), now);
    if (running && (leader == nullptr || LeadsBefore(*queue, *leader, by))) leader = queue;
    device.taken |= off && queue->state == QueueState::kReady;
    Watch::Chance chance = ChanceOf(*queue, held_since, now, config_);
    chance.held_since = std::min(held_since, long_held_.AnywhereElseSince(*queue));
    StepWatch(*queue, chance, now, sink);
  }
  EndWatches(device, now);
  device.leader = leader;
  if (any_idle) LeaveOutIdle(device);
  return next;
}

void Controls::StepWatches(DeviceRecord& device, TimePoint now, ControlSink& sink) const {
  BeginWatches(device);
  for (QueueRecord* queue : device.active) {
    if (queue->run) StepWatch(*queue, ChanceOf(*queue, device.held_since, now, config_), now, sink);
    if (queue->overruns) StepOverrun(*queue, now, sink);
  }
  EndWatches(device, now);
}

void Controls::StepWatchThatIsAwake(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                                    ControlSink& sink) const {
  DeviceRecord& device = *queue.device;
  bool ask = false;
  const Watch::Times times = queue.watch.Step(now, chance, config_, ask);
  device.ask_at = std::min(device.ask_at, times.ask_at);
  device.watch_at = std::min(device.watch_at, times.decide_at);
  device.asked |= queue.watch.counting();
  if (!ask) return;
  sink.Query(queue.id);
  if (queue.launches.Asked(now)) device.watch_at = now;
}

void Controls::BeginWatches(DeviceRecord& device) {
  device.watch_at = device.ask_at = kNever;
  device.asked = false;
}

void Controls::EndWatches(DeviceRecord& device, TimePoint now) const {
  device.silence.Count(device.taken, device.asked, now);
  device.watch_at = std::min(device.watch_at, device.silence.Until(config_));
}

}  // namespace xsched::sched
