#include "sched/core/scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/pointer_map.h"
#include "sched/core/queue_record.h"
#include "sched/core/turns.h"
#include "sched/core/waits.h"

namespace xsched::sched {
namespace {

// If a queue resumes early although a long pause was predicted, so many times more long pauses in a row are
// required before one is predicted again, up to the second number.
constexpr int kHarderToTrust = 4;
constexpr int kHardestToTrust = 4096;
// Which hints a process's queues have is kept in one word: with more distinct hints, each process that has
// several queues is taken to hold its own.
constexpr size_t kMostHintsTold = 64;
// A queue that is held for longer may be what a queue of another device waits for, in a way that we cannot
// see.
constexpr Duration kLongHeld = std::chrono::milliseconds(20);
// In less time on the device, a queue that retires nothing may not even have begun to work.
constexpr Duration kChance = std::chrono::milliseconds(2);
// A decision this much later than asked for means that the scheduler itself did not run.
constexpr Duration kLate = std::chrono::milliseconds(10);

// Is it the one that an operator wants to hear of: at work, more urgent, or earlier?
bool LeadsBefore(const QueueRecord& queue, const QueueRecord& other) {
  const bool works = queue.state == QueueState::kReady && !queue.process->off();
  const bool other_works = other.state == QueueState::kReady && !other.process->off();
  if (works != other_works) return works;
  if (queue.priority != other.priority) return queue.priority > other.priority;
  return queue.running_since < other.running_since;
}

bool Works(Charge charge) { return charge == Charge::kService || charge == Charge::kGift; }

// Of a queue that may run.
Charge ChargeOf(const QueueRecord& queue, bool running, bool off) {
  if (!running) return Charge::kNothing;
  if (off) return Charge::kWaiting;
  return queue.chosen ? Charge::kService : Charge::kGift;
}

// Has the queue, which is about to be held, been able to work since it was held before?
bool HadChance(const QueueRecord& queue, TimePoint now) {
  if (!queue.running || queue.held_since == kNever) return true;  // it has just become ready
  if (queue.let_run_by_window) return false;
  return queue.retired != queue.retired_when_held || now - queue.running_since >= kChance;
}

}  // namespace

struct Scheduler::Impl {
  SchedulerConfig config;
  const Policy* policy = FindPolicy(kDefaultPolicy);
  PointerMap<QueueRecord> queues;
  Turns turns;  // outlives the devices
  Array<DeviceRecord*> devices;
  Waits waits{queues, devices};
  Claim lender;  // the most urgent queue for which everybody runs on other devices, too
  // The leaders of the devices where a queue has been held for long, the longest first. Any queue of another
  // device that is as urgent may wait for one that is held there.
  Array<Claim> long_held;   // has room for all devices; likewise
  Array<Claim> found_held;  // kept for its memory
  TimePoint turns_at = kNever;
  TimePoint decide_at = kNever;

  QueueRecord* Find(QueueId id) const { return queues.Find(static_cast<uint64_t>(id)); }
  DeviceRecord* Device(DeviceId id, TimePoint now);
  void ForgetEmptyDevices();
  void DirtyAll();
  void MeetItself(ProcessRecord& process);

  static void Account(DeviceRecord& device, TimePoint now);
  static void SetCharge(QueueRecord& queue, Charge charge, TimePoint now);
  static Duration ServiceOf(const QueueRecord& queue);
  static Duration ChosenServiceOf(const QueueRecord& queue);
  void Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now);
  void Moved(QueueRecord& queue, TimePoint at, TimePoint now);
  void LearnPause(QueueRecord& queue, TimePoint now) const;
  TimePoint IdleAt(const QueueRecord& queue) const;
  void Forgive(TimePoint now);

  bool HasBetterClaim(const Hints& rival, const Hints& queue) const;
  static Claim ClaimOf(const QueueRecord& queue);
  void TakeMoreUrgent(Claim& best, const Claim& claim) const;

  bool ChooseDevices(TimePoint now);
  void Observe(DeviceRecord& device, TimePoint now, ControlSink& sink);
  void LetGo(DeviceRecord& device, TimePoint now) const;
  void FindWindow(DeviceRecord& device) const;
  bool ChooseLender();
  void Release(DeviceRecord& device) const;
  bool FindLongHeld(TimePoint now);
  TimePoint HeldElsewhere(const QueueRecord& queue) const;
  void RefreshRivals(DeviceRecord& device) const;
  void AskPolicy(DeviceRecord& device, TimePoint now) const;
  TimePoint Apply(DeviceRecord& device, TimePoint now, ControlSink& sink) const;
  void Report(QueueRecord& queue, bool watched, ControlSink& sink) const;
  TimePoint StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                      ControlSink& sink) const;
  WaitReason ReasonOf(const QueueRecord& queue) const;
};

Scheduler::Scheduler(const SchedulerConfig& config) : impl_(new (std::nothrow) Impl) {
  if (impl_ != nullptr) impl_->config = config;
}

Scheduler::~Scheduler() {
  if (impl_ == nullptr) return;
  for (DeviceRecord* device : impl_->devices) {
    for (QueueRecord* queue : device->queues) delete queue;
    delete device;
  }
}

// ---- events ----

DeviceRecord* Scheduler::Impl::Device(DeviceId id, TimePoint now) {
  for (DeviceRecord* device : devices) {
    if (device->id == id) return device;
  }
  if (!long_held.Reserve(devices.size() + 1) || !found_held.Reserve(devices.size() + 1)) return nullptr;
  auto* device = new (std::nothrow) DeviceRecord;
  if (device == nullptr) return nullptr;
  device->id = id;
  device->accounted_at = now;
  if (devices.Push(device)) return device;
  delete device;
  return nullptr;
}

bool Scheduler::AddQueue(QueueId id, ProcessId process_id, DeviceId device_id, const Hints& hints,
                         TimePoint now, bool sliceable) {
  if (impl_ == nullptr) return false;
  DeviceRecord* device = impl_->Device(device_id, now);
  if (device == nullptr || !device->queues.Reserve(device->queues.size() + 1)) return false;
  if (!device->views.Reserve(device->queues.size() + 1)) return false;
  ProcessRecord* process = device->slices.Get(process_id, *device);
  if (process == nullptr) return false;
  auto* queue = new (std::nothrow) QueueRecord;
  if (queue == nullptr || !impl_->queues.Insert(static_cast<uint64_t>(id), queue)) {
    delete queue;
    device->RivalsChanged();  // a process without queues is forgotten
    return false;
  }
  queue->id = id;
  queue->process = process;
  queue->device = device;
  queue->hints = hints;
  queue->sliceable = sliceable;
  if (process->queues++ == 0) impl_->MeetItself(*process);
  size_t at = device->queues.size();
  while (at > 0 && device->queues[at - 1]->id > id) --at;
  device->queues.Insert(at, queue);
  device->RivalsChanged();
  return true;
}

// A process that is on several devices has its turns on all of them at the same time.
void Scheduler::Impl::MeetItself(ProcessRecord& process) {
  for (DeviceRecord* device : devices) {
    ProcessRecord* other = device->slices.Find(process.id);
    if (other == nullptr || other == &process) continue;
    process.on_others = true;
    if (std::exchange(other->on_others, true)) continue;
    device->dirty = true;
    device->slices.Changed();
  }
}

void Scheduler::SetJob(ProcessId process, JobId job) {
  if (impl_ == nullptr || impl_->turns.JobOf(process) == job) return;
  impl_->turns.SetJob(process, job);  // without memory it takes its turns as a process without a job
}

void Scheduler::RemoveQueue(QueueId id, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->queues.Remove(static_cast<uint64_t>(id));
  if (queue == nullptr) return;
  DeviceRecord& device = *queue->device;
  Impl::SetCharge(*queue, Charge::kNothing, now);
  auto before = [](const QueueRecord* other, QueueId wanted) { return other->id < wanted; };
  QueueRecord** at = std::lower_bound(device.queues.begin(), device.queues.end(), id, before);
  device.queues.Remove(static_cast<size_t>(at - device.queues.begin()));
  device.slices.QueueGone(*queue->process, now);
  delete queue;
  device.dirty = device.rivals_changed = true;
  if (impl_->waits.any()) impl_->DirtyAll();  // what it waited for may be elsewhere
}

void Scheduler::Impl::DirtyAll() {
  for (DeviceRecord* device : devices) device->dirty = true;
}

// Clients name devices as they like: one without queues must not stay, once its slices are given back.
void Scheduler::Impl::ForgetEmptyDevices() {
  for (size_t i = devices.size(); i-- > 0;) {
    if (!devices[i]->queues.empty() || !devices[i]->slices.none()) continue;
    delete devices[i];
    devices.Remove(i);
  }
}

void Scheduler::Progress(QueueId id, uint64_t submitted, uint64_t retired, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr) return;
  retired = std::min(retired, submitted);
  const TimePoint moved_at = std::min(now, queue->stopped_at);
  if (Works(queue->charge)) queue->stopped_at = kNever;
  if (submitted == queue->submitted && retired == queue->retired) return;
  bool retired_some = retired != queue->retired;
  queue->submitted = submitted;
  if (retired_some) impl_->Retire(*queue, retired, moved_at, now);

  QueueState before = queue->state;
  if (before != QueueState::kReady) impl_->LearnPause(*queue, now);
  if (queue->Unfinished()) {
    if (before == QueueState::kReady) return;
    queue->state = QueueState::kReady;
    queue->watch.Reset(now);
    // From lingering, it goes on as if it had never paused.
    if (before == QueueState::kIdle) {
      queue->ready_since = now;
      queue->newly_ready = true;
      queue->device->dirty = true;
    }
  } else if (before == QueueState::kReady || retired_some) {
    queue->watch.Reset(now);
    if (before == QueueState::kIdle) {
      // It came and went between two looks.
      queue->ready_since = now;
      queue->newly_ready = true;
    }
    queue->state = QueueState::kLingering;
    queue->idle_since = now;
    queue->device->dirty = true;
  }
}

void Scheduler::Moved(QueueId id, uint32_t moves, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->moves, moves) == moves) return;
  impl_->Moved(*queue, std::min(now, queue->stopped_at), now);
}

void Scheduler::Impl::Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now) {
  queue.retired = retired;
  if (queue.awaited) queue.device->dirty = true;
  Moved(queue, at, now);
}

// The device has done something for the queue, at that time for sure.
void Scheduler::Impl::Moved(QueueRecord& queue, TimePoint at, TimePoint now) {
  DeviceRecord& device = *queue.device;
  device.silence.Break(at, now);
  if (queue.watch.stalled()) device.dirty = true;
  queue.watch.Reset(now);
}

void Scheduler::SetDependencies(QueueId waiter, std::span<const Dependency> dependencies) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(waiter);
  if (queue != nullptr && impl_->waits.Set(*queue, dependencies)) queue->device->dirty = true;
}

void Scheduler::SetAbsent(QueueId id, bool absent, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->absent == absent) return;
  Impl::SetCharge(*queue, Charge::kNothing, now);
  queue->absent = absent;
  queue->absent_since = now;
  if (queue->watch.stalled()) queue->watch.Reset(now);
  queue->newly_ready = true;
  queue->device->dirty = true;
}

void Scheduler::SetHints(QueueId id, const Hints& hints) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->hints == hints) return;
  queue->hints = hints;
  queue->newly_ready = true;
  queue->device->RivalsChanged();
}

std::optional<Hints> Scheduler::GetHints(QueueId id) const {
  QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  if (queue == nullptr) return std::nullopt;
  return queue->hints;
}

void Scheduler::SetPolicy(const Policy& policy) {
  if (impl_ == nullptr || impl_->policy == &policy) return;
  impl_->policy = &policy;
  for (DeviceRecord* device : impl_->devices) {
    device->RivalsChanged();
    device->policy_state.Clear();
    for (ProcessRecord* process : device->slices.processes()) process->policy_state.Clear();
    for (QueueRecord* queue : device->queues) {
      queue->policy_state.Clear();
      queue->newly_ready = true;
    }
  }
}

const Policy& Scheduler::policy() const {
  return impl_ == nullptr ? *FindPolicy(kDefaultPolicy) : *impl_->policy;
}

void Scheduler::SetTimeslice(Duration timeslice) {
  if (impl_ == nullptr) return;
  impl_->config.timeslice = std::clamp<Duration>(timeslice, std::chrono::microseconds(TIMESLICE_MIN),
                                                 std::chrono::microseconds(TIMESLICE_MAX));
  impl_->DirtyAll();
}

Duration Scheduler::timeslice() const { return impl_ == nullptr ? Duration{} : impl_->config.timeslice; }

// ---- accounting ----

void Scheduler::Impl::Account(DeviceRecord& device, TimePoint now) {
  if (now <= device.accounted_at) return;
  if (device.sharing != 0) device.service_clock += (now - device.accounted_at) / device.sharing;
  device.accounted_at = now;
}

void Scheduler::Impl::SetCharge(QueueRecord& queue, Charge charge, TimePoint now) {
  if (queue.charge == charge) return;
  DeviceRecord& device = *queue.device;
  Account(device, now);
  const Duration service = ServiceOf(queue);
  if (queue.charge == Charge::kGift) queue.gifts += service - queue.service;
  queue.service = service;
  if (queue.charge == Charge::kWaiting) queue.waiting += now - queue.waiting_mark;
  if (charge == Charge::kWaiting) queue.stopped_at = std::min(queue.stopped_at, now);
  device.sharing += Works(charge) - Works(queue.charge);
  queue.charge = charge;
  queue.service_mark = device.service_clock;
  queue.waiting_mark = now;
}

// REQUIRES: its device is accounted for.
Duration Scheduler::Impl::ServiceOf(const QueueRecord& queue) {
  if (!Works(queue.charge)) return queue.service;
  return queue.service + (queue.device->service_clock - queue.service_mark);
}

// As the policy counts it. REQUIRES: likewise.
Duration Scheduler::Impl::ChosenServiceOf(const QueueRecord& queue) {
  return (queue.charge == Charge::kGift ? queue.service : ServiceOf(queue)) - queue.gifts;
}

// The queue has work again.
void Scheduler::Impl::LearnPause(QueueRecord& queue, TimePoint now) const {
  if (now - queue.idle_since > config.grace) {
    queue.long_pauses = std::min(queue.long_pauses + 1, kHardestToTrust);
    return;
  }
  if (queue.long_pauses >= queue.trusted_after)
    queue.trusted_after = std::min(queue.trusted_after * kHarderToTrust, kHardestToTrust);
  queue.long_pauses = 0;
}

// When a lingering queue counts as idle. A program that serves requests has none of the small gaps that the
// grace period is for, and the others would wait for nothing.
TimePoint Scheduler::Impl::IdleAt(const QueueRecord& queue) const {
  return queue.long_pauses < queue.trusted_after ? queue.idle_since + config.grace : queue.idle_since;
}

// If the scheduler did not run for a while, answers may lie unread: no queue was silent meanwhile.
void Scheduler::Impl::Forgive(TimePoint now) {
  if (decide_at == kNever || now <= decide_at + kLate) return;
  for (DeviceRecord* device : devices) {
    for (QueueRecord* queue : device->queues) queue->watch.Forgive(now - decide_at);
    device->silence.Forgive(now - decide_at);
  }
}

// ---- claims ----

// May `rival` hold the queue, and never the reverse?
bool Scheduler::Impl::HasBetterClaim(const Hints& rival, const Hints& queue) const {
  return policy->CanHold(queue, rival) && !policy->CanHold(rival, queue);
}

Claim Scheduler::Impl::ClaimOf(const QueueRecord& queue) {
  Claim claim{true, queue.hints, queue.device};
  claim.hints.priority = queue.priority;
  return claim;
}

// ---- decisions ----

// The devices that are due go through it in step: what time has changed; who is how urgent; whom the policy
// lets run; who must run besides; whose turn it is; what is new to the clients, and when to look again.
TimePoint Scheduler::Decide(TimePoint now, ControlSink& sink) {
  if (impl_ == nullptr) return kNever;
  impl_->Forgive(now);
  if (impl_->ChooseDevices(now)) {
    auto for_each_due = [this](auto&& step) {
      for (DeviceRecord* device : impl_->devices) {
        if (device->due) step(*device);
      }
    };
    for_each_due([&](DeviceRecord& device) { impl_->Observe(device, now, sink); });
    impl_->waits.ForgetPassed();
    impl_->waits.LendPriorities();
    for_each_due([&](DeviceRecord& device) { impl_->FindWindow(device); });
    const bool held_elsewhere = impl_->FindLongHeld(now);
    if (impl_->ChooseLender() || held_elsewhere) {
      for (DeviceRecord* device : impl_->devices) device->due = true;
      for_each_due([&](DeviceRecord& device) {
        if (device.observed) return;
        impl_->Observe(device, now, sink);
        impl_->FindWindow(device);
      });
    }
    for_each_due([&](DeviceRecord& device) {
      impl_->Release(device);
      impl_->AskPolicy(device, now);
    });
    impl_->waits.LendRuns();
    for_each_due([&](DeviceRecord& device) {
      device.slices_at = device.slices.Observe(device.queues, device.released_for.valid, now, sink);
    });
    impl_->turns_at = impl_->turns.Update(impl_->devices, now, impl_->config.timeslice);
    for_each_due([&](DeviceRecord& device) {
      device.slices.Report(device.id, device.released_for.hints.priority, now, sink);
      device.decide_at = std::min(
          {impl_->Apply(device, now, sink), device.policy_at, device.slices_at, device.slices.refresh_at()});
      device.dirty = device.due = device.observed = false;
    });
    if (impl_->FindLongHeld(now)) impl_->DirtyAll();
    impl_->ForgetEmptyDevices();
  }
  impl_->decide_at = impl_->turns_at;
  for (const DeviceRecord* device : impl_->devices)
    impl_->decide_at = std::min(impl_->decide_at, device->dirty ? now : device->decide_at);
  return impl_->decide_at;
}

// False: none is due. While a queue waits for another, which may be of another device, all are decided
// together.
bool Scheduler::Impl::ChooseDevices(TimePoint now) {
  bool any = false;
  for (DeviceRecord* device : devices) {
    device->due =
        device->dirty || now >= device->decide_at || (now >= turns_at && device->slices.take_turns());
    any |= device->due;
  }
  if (any && waits.any()) {
    for (DeviceRecord* device : devices) device->due = true;
  }
  return any;
}

// What time alone has changed, and what follows from hints.
void Scheduler::Impl::Observe(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  device.observed = true;
  Account(device, now);
  for (QueueRecord* queue : device.queues) {
    if (queue->state == QueueState::kLingering && now >= IdleAt(*queue)) {
      queue->state = QueueState::kIdle;
      queue->running = false;
      queue->held_since = kNever;
      SetCharge(*queue, Charge::kNothing, now);
    }
    queue->incidents += queue->watch.Age(now, config);
    queue->priority = queue->hints.priority;
  }
  if (now >= device.silence.Until(config)) LetGo(device, now);
  if (device.rivals_changed) RefreshRivals(device);
  if (now >= device.slices.refresh_at())
    device.slices.Refresh(*policy, device.id, device.queues, turns, sink);
}

// ---- windows ----

// No queue of the device retires anything.
void Scheduler::Impl::LetGo(DeviceRecord& device, TimePoint now) const {
  for (QueueRecord* queue : device.queues) {
    if (queue->watch.counting()) queue->incidents += queue->watch.LetGo(now, config);
  }
  device.silence.Count(false, false, now);
}

// For whom does the watchdog let everybody run on its device?
void Scheduler::Impl::FindWindow(DeviceRecord& device) const {
  device.window = device.lends = Claim{};
  for (const QueueRecord* queue : device.queues) {
    if (!queue->watch.window_open()) continue;
    const Claim claim = ClaimOf(*queue);
    TakeMoreUrgent(device.window, claim);
    if (queue->watch.lends_elsewhere()) TakeMoreUrgent(device.lends, claim);
  }
}

void Scheduler::Impl::TakeMoreUrgent(Claim& best, const Claim& claim) const {
  if (claim.valid && (!best.valid || HasBetterClaim(claim.hints, best.hints))) best = claim;
}

// Finds the most urgent queue that lends its urgency to other devices. False: it is the same as before.
bool Scheduler::Impl::ChooseLender() {
  Claim best;
  for (const DeviceRecord* device : devices) TakeMoreUrgent(best, device->lends);
  if (best == lender) return false;
  lender = best;
  return true;
}

// For whom does everybody run here: a queue of this device, or one of another that lends its urgency?
void Scheduler::Impl::Release(DeviceRecord& device) const {
  device.released_for = device.window;
  if (!lender.valid || lender.device == &device) return;
  // Where only one queue has work, or one with a better claim has, nothing is gained by it.
  int eligible = 0;
  for (const QueueRecord* queue : device.queues) {
    if (!queue->IsEligible()) continue;
    if (HasBetterClaim(ClaimOf(*queue).hints, lender.hints)) return;
    ++eligible;
  }
  if (eligible > 1) TakeMoreUrgent(device.released_for, lender);
}

// False: nothing has changed.
bool Scheduler::Impl::FindLongHeld(TimePoint now) {
  if (devices.size() < 2) return false;
  found_held.Clear();
  for (const DeviceRecord* device : devices) {
    if (device->held_since == kNever || device->held_since + kLongHeld > now || !device->leader_claim.valid)
      continue;
    size_t at = found_held.size();
    while (at > 0 && found_held[at - 1].device->held_since > device->held_since) --at;
    found_held.Insert(at, device->leader_claim);
  }
  if (std::equal(found_held.begin(), found_held.end(), long_held.begin(), long_held.end())) return false;
  long_held.Clear();
  for (const Claim& leader : found_held) {
    [[maybe_unused]] bool pushed = long_held.Push(leader);
  }
  return true;
}

// Since when a queue has been held on another device that this one may wait for; kNever: none is.
TimePoint Scheduler::Impl::HeldElsewhere(const QueueRecord& queue) const {
  for (const Claim& leader : long_held) {
    if (leader.device == queue.device) continue;
    if (!HasBetterClaim(leader.hints, ClaimOf(queue).hints)) return leader.device->held_since;
  }
  return kNever;
}

// ---- who runs ----

// Who may be held by whom depends on hints alone, and few of them differ: ask once per distinct pair.
void Scheduler::Impl::RefreshRivals(DeviceRecord& device) const {
  device.rivals_changed = false;
  struct Group {
    Hints hints;
    size_t count;
    bool can_hold;
    bool can_be_held;
  };
  Array<Group> groups;
  for (QueueRecord* queue : device.queues) {
    Group* group = std::find_if(groups.begin(), groups.end(),
                                [queue](const Group& other) { return other.hints == queue->hints; });
    queue->hints_number = static_cast<size_t>(group - groups.begin());
    if (group != groups.end()) {
      ++group->count;
    } else if (!groups.Push(Group{queue->hints, 1, false, false})) {
      return;  // out of memory: what they were is good enough
    }
  }
  // Which hints can hold which: a bit for each.
  uint64_t held_by[kMostHintsTold] = {};
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = 0; j < groups.size(); ++j) {
      if (i == j && groups[i].count == 1) continue;
      if (!policy->CanHold(groups[i].hints, groups[j].hints)) continue;
      groups[i].can_be_held = groups[j].can_hold = true;
      if (i < kMostHintsTold && j < kMostHintsTold) held_by[i] |= uint64_t{1} << j;
    }
  }
  const bool told = groups.size() <= kMostHintsTold;
  for (ProcessRecord* process : device.slices.processes()) process->hints_held = process->hints_twice = 0;
  for (QueueRecord* queue : device.queues) {
    const Group& group = groups[queue->hints_number];
    queue->can_hold = group.can_hold;
    queue->can_be_held = group.can_be_held;
    if (!told) continue;
    const uint64_t bit = uint64_t{1} << queue->hints_number;
    queue->process->hints_twice |= queue->process->hints_held & bit;
    queue->process->hints_held |= bit;
  }
  for (QueueRecord* queue : device.queues) {
    if (!told) {
      queue->held_by_own = queue->process->queues > 1;
      continue;
    }
    const uint64_t bit = uint64_t{1} << queue->hints_number;
    const uint64_t others = (queue->process->hints_held & ~bit) | queue->process->hints_twice;
    queue->held_by_own = (held_by[queue->hints_number] & others) != 0;
  }
}

void Scheduler::Impl::AskPolicy(DeviceRecord& device, TimePoint now) const {
  device.policy_at = kNever;
  bool ask = !device.slices.replace_holding();
  if (ask && device.released_for.valid) {
    ask = std::any_of(device.queues.begin(), device.queues.end(), [&](const QueueRecord* queue) {
      return queue->IsEligible() && HasBetterClaim(ClaimOf(*queue).hints, device.released_for.hints);
    });
  }
  device.views.Clear();
  for (QueueRecord* queue : device.queues) {
    queue->run = true;
    queue->chosen = false;
    if (!ask || !queue->IsEligible()) continue;
    [[maybe_unused]] bool pushed = device.views.Push(
        QueueView{queue->id, queue->process->id, queue->hints, queue->priority, queue->ready_since,
                  queue->running, queue->running_since, ChosenServiceOf(*queue), queue->newly_ready,
                  &queue->policy_state, &queue->process->policy_state, true});  // reserved by AddQueue
  }
  if (device.views.empty()) return;
  device.policy_at = policy->Decide({now, config.timeslice, device.views, &device.policy_state});
  const QueueView* view = device.views.begin();
  for (QueueRecord* queue : device.queues) {
    if (!queue->IsEligible()) continue;
    queue->run = queue->chosen = view->run;
    queue->newly_ready = false;
    ++view;
  }
}

// ---- what is told ----

void Scheduler::Impl::Report(QueueRecord& queue, bool watched, ControlSink& sink) const {
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

// Reports what has changed: holds first, so that who is let run finds the device free. Returns when to look
// again: when a lingering queue will be idle, or the watch wants to be called.
TimePoint Scheduler::Impl::Apply(DeviceRecord& device, TimePoint now, ControlSink& sink) const {
  device.held_since = kNever;
  TimePoint next = kNever;
  bool taken = false;
  for (QueueRecord* queue : device.queues) {
    if (queue->run) continue;
    if (queue->control.run && HadChance(*queue, now)) {
      queue->held_since = now;
      queue->retired_when_held = queue->retired;
    }
    queue->let_run_by_window = true;
    device.held_since = std::min(device.held_since, queue->held_since);
    queue->running = false;
    SetCharge(*queue, Charge::kWaiting, now);
    Report(*queue, false, sink);
    taken |= queue->state == QueueState::kReady && !queue->absent;
    next = std::min(next, StepWatch(*queue, {}, now, sink));
  }
  if (devices.size() > 1 && device.held_since != kNever && device.held_since + kLongHeld > now)
    next = std::min(next, device.held_since + kLongHeld);
  // Perhaps no queue is held, but processes are off the device.
  const bool silent = now >= device.silence.AskAt(config);
  bool asked = false;
  const QueueRecord* leader = nullptr;
  for (QueueRecord* queue : device.queues) {
    if (queue->state == QueueState::kLingering) next = std::min(next, IdleAt(*queue));
    if (!queue->run) continue;
    const TimePoint held_elsewhere = HeldElsewhere(*queue);
    TimePoint held_since = std::min(device.held_since, held_elsewhere);
    if (held_since == kNever && silent) held_since = device.silence.since();
    Report(*queue, held_elsewhere != kNever, sink);
    queue->let_run_by_window &= device.released_for.valid;
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
  if (device.silence.AskAt(config) > now) next = std::min(next, device.silence.AskAt(config));
  next = std::min(next, device.silence.Until(config));
  device.leader = leader == nullptr ? QueueId{} : leader->id;
  device.leader_claim = leader == nullptr ? Claim{} : ClaimOf(*leader);
  return next;
}

TimePoint Scheduler::Impl::StepWatch(QueueRecord& queue, const Watch::Chance& chance, TimePoint now,
                                     ControlSink& sink) const {
  bool ask = false;
  const TimePoint next = queue.watch.Step(now, chance, config, ask);
  if (ask) sink.Query(queue.id);
  return next;
}

// ---- statistics ----

WaitReason Scheduler::Impl::ReasonOf(const QueueRecord& queue) const {
  if (!queue.Unfinished()) return WaitReason::kNone;
  if (queue.absent) return WaitReason::kAbsent;
  if (!queue.control.run) {
    const Claim& leader = queue.device->leader_claim;
    const bool behind = leader.valid && !HasBetterClaim(leader.hints, ClaimOf(queue).hints);
    return behind ? WaitReason::kTurn : WaitReason::kHeld;
  }
  if (queue.process->off()) return WaitReason::kOffDevice;
  return queue.watch.stalled() ? WaitReason::kStalled : WaitReason::kNone;
}

Control Scheduler::GetControl(QueueId id) const {
  const QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  return queue == nullptr ? Control{} : queue->control;
}

std::optional<QueueStats> Scheduler::Stats(QueueId id, TimePoint now) const {
  QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  if (queue == nullptr) return std::nullopt;
  Impl::Account(*queue->device, now);
  QueueStats stats;
  stats.state = queue->state;
  stats.stalled = queue->watch.stalled();
  stats.wait_reason = impl_->ReasonOf(*queue);
  switch (stats.wait_reason) {
    case WaitReason::kNone:
      break;
    case WaitReason::kHeld:
      stats.waits_for = queue->device->leader;
      [[fallthrough]];
    case WaitReason::kTurn:
      stats.waiting_since = queue->held_since;
      break;
    case WaitReason::kOffDevice:
      stats.waiting_since = std::max(queue->process->off_since, queue->ready_since);
      break;
    case WaitReason::kStalled:
      stats.waiting_since = queue->watch.stalled_since();
      break;
    case WaitReason::kAbsent:
      stats.waiting_since = std::max(queue->absent_since, queue->ready_since);
      break;
  }
  stats.control = queue->control;
  stats.submitted = queue->submitted;
  stats.retired = queue->retired;
  stats.service = Impl::ServiceOf(*queue);
  stats.waiting = queue->waiting;
  if (queue->charge == Charge::kWaiting) stats.waiting += now - queue->waiting_mark;
  stats.holds = queue->holds;
  stats.incidents = queue->incidents;
  return stats;
}

}  // namespace xsched::sched
