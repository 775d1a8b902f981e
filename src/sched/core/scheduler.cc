#include "sched/core/scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/pointer_map.h"
#include "sched/core/accounting.h"
#include "sched/core/active_queues.h"
#include "sched/core/controls.h"
#include "sched/core/former_rivals.h"
#include "sched/core/long_held.h"
#include "sched/core/queue_record.h"
#include "sched/core/queue_stats.h"
#include "sched/core/reservation.h"
#include "sched/core/rivals.h"
#include "sched/core/turns.h"
#include "sched/core/views.h"
#include "sched/core/waits.h"
#include "sched/core/windows.h"

namespace xsched::sched {
namespace {

// If a decision is this much later than it was due, the scheduler itself did not run.
constexpr Duration kLate = std::chrono::milliseconds(10);
// How often the policies of a chain are asked in one decision, if all that they let run have used up their
// limits.
constexpr int kMostRounds = 4;

// Where one process at a time is on the device, a time slice for policies is so many times as long. It takes
// a good part of a millisecond to take one off and put another on.
constexpr int64_t kSlicesOfTurn = 4;

}  // namespace

struct Scheduler::Impl {
  SchedulerConfig config;
  PolicySetting policy = *FindPolicy(kDefaultPolicy);
  PointerMap<QueueRecord> queues;
  Turns turns;  // outlives the devices
  Tenants tenants;
  Array<DeviceRecord*> devices;
  Waits waits{queues, devices};
  Windows windows{devices};
  LongHeld long_held{devices};
  Controls controls{config, long_held};
  FormerRivals former_rivals;
  TimePoint turns_at = kNever;
  bool refreshed = false;  // the time slices of a device, in the current decision
  TimePoint decide_at = kNever;

  QueueRecord* Find(QueueId id) const { return queues.Find(static_cast<uint64_t>(id)); }
  DeviceRecord* Device(DeviceId id, TimePoint now);
  void ForgetEmptyDevices();
  void DirtyAll();
  void MarkOnOthers(ProcessRecord& process);
  void SlicesChanged(ProcessId process) const;
  template <typename Is>
  static void HasNewShare(DeviceRecord& device, Is&& is);

  void Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now);
  void Resume(QueueRecord& queue, TimePoint now);
  void LaunchesChanged(QueueRecord& queue);
  void EndRequest(QueueRecord& queue, TimePoint since, TimePoint now);
  void Moved(QueueRecord& queue, TimePoint at, TimePoint now);
  void Forgive(TimePoint now);

  bool IsAnythingDue(TimePoint now) const;
  bool ChooseDevices(TimePoint now);
  void RefreshAllRivals();
  void Observe(DeviceRecord& device, TimePoint now, ControlSink& sink);
  void RefreshSlices(DeviceRecord& device, ControlSink& sink);
  void FollowLeaders(TimePoint now, ControlSink& sink);
  // True if it matters to a policy when a queue's work came.
  bool PolicyReadsRequests() const {
    return policy.Reads(&HintsRead::deadline) || policy.Reads(&HintsRead::laxity) ||
           policy.Reads(&HintsRead::latency_target);
  }
  bool PoliciesDecide(const DeviceRecord& device) const;
  void AskPolicies(TimePoint now) const;
  bool AskPoliciesOnce(TimePoint now) const;
  bool AnyLimitReached(TimePoint now) const;
  bool MayOnlyAsk(const DeviceRecord& device) const;
  void AskForProgress(TimePoint now, ControlSink& sink);
  Priority HighestOfAll(Granularity by) const;
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
  if (!long_held.Reserve(devices.size() + 1)) return nullptr;
  auto* device = new (std::nothrow) DeviceRecord;
  if (device == nullptr) return nullptr;
  device->id = id;
  device->accounted_at = now;
  if (devices.Push(device)) return device;
  delete device;
  return nullptr;
}

bool Scheduler::AddQueue(QueueId id, ProcessId process_id, DeviceId device_id, const Hints& hints,
                         TimePoint now, const QueueTraits& traits) {
  if (impl_ == nullptr) return false;
  DeviceRecord* device = impl_->Device(device_id, now);
  if (device == nullptr || !device->queues.Reserve(device->queues.size() + 1)) return false;
  if (!device->active.Reserve(device->queues.size() + 1)) return false;
  if (!device->views.Reserve(device->queues.size() + 1)) return false;
  ProcessRecord* process = device->slices.Get(process_id, *device);
  if (process == nullptr) return false;
  if (process->tenant == nullptr) {
    const TenantId tenant = impl_->tenants.Of(process_id);
    if (!JoinTenant(*process, tenant, impl_->tenants.ShareOf(tenant))) {
      device->RivalsChanged();  // so that a process without queues is removed
      return false;
    }
  }
  auto* queue = new (std::nothrow) QueueRecord;
  if (queue == nullptr || !impl_->queues.Insert(static_cast<uint64_t>(id), queue)) {
    delete queue;
    device->RivalsChanged();  // so that a process without queues is removed
    return false;
  }
  queue->id = id;
  queue->process = process;
  queue->device = device;
  queue->hints = hints;
  queue->traits = traits;
  if (process->queues++ == 0) {
    impl_->MarkOnOthers(*process);
    impl_->former_rivals.CameBack(process_id, device_id);
  }
  size_t at = device->queues.size();
  while (at > 0 && device->queues[at - 1]->id > id) --at;
  device->queues.Insert(at, queue);
  Activate(*queue);
  device->RivalsChanged();
  return true;
}

// A process that uses several devices has its turns on all of them at the same time.
void Scheduler::Impl::MarkOnOthers(ProcessRecord& process) {
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
  impl_->turns.SetJob(process, job);  // if memory runs out, it takes its turns as a process without a job
  impl_->SlicesChanged(process);
}

// What those queues have received by their former share is no credit and no debt by the new one.
template <typename Is>
void Scheduler::Impl::HasNewShare(DeviceRecord& device, Is&& is) {
  for (QueueRecord* queue : device.queues) {
    if (is(*queue)) queue->newly_ready = kNewToAllPolicies;
  }
  device.RivalsChanged();
}

void Scheduler::SetTenant(ProcessId process, TenantId tenant) {
  if (impl_ == nullptr || impl_->tenants.Of(process) == tenant) return;
  impl_->tenants.Set(process, tenant);
  for (DeviceRecord* device : impl_->devices) {
    ProcessRecord* record = device->slices.Find(process);
    if (record == nullptr || !ChangeTenant(*record, tenant, impl_->tenants.ShareOf(tenant))) continue;
    Impl::HasNewShare(*device, [record](const QueueRecord& queue) { return queue.process == record; });
  }
}

void Scheduler::SetTenantShare(TenantId tenant, const TenantShare& share) {
  if (impl_ == nullptr) return;
  impl_->tenants.SetShare(tenant, share);
  for (DeviceRecord* device : impl_->devices) {
    for (TenantRecord* record : device->tenants) {
      if (record->id != tenant || record->share == share) continue;
      record->share = share;
      Impl::HasNewShare(*device,
                        [record](const QueueRecord& queue) { return queue.process->tenant == record; });
    }
  }
}

void Scheduler::RemoveProcess(ProcessId process) {
  if (impl_ == nullptr) return;
  impl_->turns.SetJob(process, JobId{});
  impl_->tenants.Set(process, TenantId{});
  impl_->SlicesChanged(process);
  if (!impl_->former_rivals.Gone(process)) return;
  for (DeviceRecord* device : impl_->devices) device->RivalsChanged();
}

// On the devices of this process.
void Scheduler::Impl::SlicesChanged(ProcessId process) const {
  for (DeviceRecord* device : devices) {
    if (device->slices.Find(process) == nullptr) continue;
    device->slices.Changed();
    device->dirty = true;
  }
}

void Scheduler::RemoveQueue(QueueId id, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->queues.Remove(static_cast<uint64_t>(id));
  if (queue == nullptr) return;
  DeviceRecord& device = *queue->device;
  SetCharge(*queue, Charge::kNothing, now);
  SetChosen(*queue, false, now);
  RemoveActive(*queue);
  if (device.leader == queue) device.leader = nullptr;
  auto before = [](const QueueRecord* other, QueueId wanted) { return other->id < wanted; };
  QueueRecord** at = std::lower_bound(device.queues.begin(), device.queues.end(), id, before);
  device.queues.Remove(static_cast<size_t>(at - device.queues.begin()));
  if (queue->process->queues == 1 && !queue->traits.sliceable)
    impl_->former_rivals.Left({queue->process->id, device.id, queue->hints});
  device.slices.QueueGone(*queue->process, impl_->policy.ShowsProcesses(), now);
  delete queue;
  device.dirty = device.rivals_changed = true;
}

void Scheduler::Impl::DirtyAll() {
  for (DeviceRecord* device : devices) device->dirty = true;
}

// Clients choose the names of devices. So a device without queues is removed once its slices are given back:
// otherwise the list could grow without bound.
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
  if (IsService(queue->charge)) queue->stopped_at = kNever;
  if (submitted == queue->submitted && retired == queue->retired) return;
  Activate(*queue);
  bool retired_some = retired != queue->retired;
  queue->submitted = submitted;
  if (retired_some) impl_->Retire(*queue, retired, moved_at, now);

  QueueState before = queue->state;
  if (before != QueueState::kReady) impl_->Resume(*queue, now);
  if (queue->Unfinished()) {
    if (before == QueueState::kReady) {
      const TimePoint since = queue->requests.since();
      if (!queue->requests.Continue(submitted, retired, now)) return;
      impl_->EndRequest(*queue, since, now);
      queue->device->dirty |= impl_->PolicyReadsRequests();
      return;
    }
    queue->state = QueueState::kReady;
    queue->watch.Reset(now);
    // A lingering queue goes on as if it had never paused.
    if (before == QueueState::kLingering) {
      queue->requests.Resume(submitted, queue->hints, now);
    } else {
      queue->ready_since = now;
      queue->requests.Begin(submitted, now);
      queue->newly_ready = kNewToAllPolicies;
      queue->device->dirty = true;
    }
  } else if (before == QueueState::kReady || retired_some) {
    queue->watch.Reset(now);
    if (before == QueueState::kIdle) {
      // It became ready and finished between two readings of its counters.
      queue->ready_since = now;
      queue->requests.Begin(submitted, now);
      queue->newly_ready = kNewToAllPolicies;
    }
    queue->state = QueueState::kLingering;
    EndOverrun(*queue, now);
    impl_->EndRequest(*queue, queue->requests.since(), now);
    queue->pauses.Begin(now);
    queue->device->dirty = true;
  }
}

// A pause is over.
void Scheduler::Impl::Resume(QueueRecord& queue, TimePoint now) {
  const bool soon = queue.pauses.End(now, GraceOf(queue, config));
  if (queue.launches.Resumed(soon, now)) LaunchesChanged(queue);
}

void Scheduler::Impl::EndRequest(QueueRecord& queue, TimePoint since, TimePoint now) {
  if (queue.absent || queue.absent_since > since) return;
  queue.finished_at = queue.process->finished_at = queue.process->tenant->finished_at = now;
}

void Scheduler::Moved(QueueId id, uint32_t moves, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->moves, moves) == moves) return;
  impl_->Moved(*queue, std::min(now, queue->stopped_at), now);
}

void Scheduler::Drained(QueueId id, uint32_t drains, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->drains, drains) == drains) return;
  EndOverrun(*queue, now);
}

void Scheduler::FoundIdle(QueueId id, uint32_t found_idle, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->found_idle, found_idle) == found_idle) return;
  queue->launches.FoundIdle();
  // Its pause may be over by the time of the report.
  if (queue->state == QueueState::kReady && queue->launches.Resumed(true, now))
    impl_->LaunchesChanged(*queue);
}

void Scheduler::Impl::LaunchesChanged(QueueRecord& queue) {
  Activate(queue);
  queue.device->dirty = true;
}

void Scheduler::Impl::Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now) {
  queue.retired = retired;
  if (queue.awaited) queue.device->dirty = true;
  Moved(queue, at, now);
}

// The queue made progress, at `at` or later.
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
  SetCharge(*queue, Charge::kNothing, now);
  queue->absent = absent;
  queue->absent_since = now;
  if (queue->watch.stalled()) queue->watch.Reset(now);
  queue->newly_ready = kNewToAllPolicies;
  queue->device->dirty = true;
}

void Scheduler::SetHints(QueueId id, const Hints& hints) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->hints == hints) return;
  queue->hints = hints;
  queue->newly_ready = kNewToAllPolicies;
  Activate(*queue);
  queue->device->RivalsChanged();
}

double Scheduler::GuaranteedWith(QueueId id, ProcessId process, DeviceId device_id,
                                 const Hints& hints) const {
  double all = 0;
  double largest = GuaranteeOf(hints);  // of `process`
  if (impl_ == nullptr) return largest;
  for (const DeviceRecord* device : impl_->devices) {
    if (device->id != device_id) continue;
    for (ProcessRecord* other : device->slices.processes()) other->guaranteed = 0;
    for (const QueueRecord* queue : device->queues) {
      if (queue->id == id) continue;
      double& guaranteed = queue->process->id == process ? largest : queue->process->guaranteed;
      guaranteed = std::max(guaranteed, GuaranteeOf(queue->hints));
    }
    for (const ProcessRecord* other : device->slices.processes()) all += other->guaranteed;
  }
  return all + largest;
}

void Scheduler::SetFacts(QueueId id, const ProcessFacts& facts) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->facts == facts) return;
  queue->facts = facts;
  queue->newly_ready = kNewToAllPolicies;
  queue->device->RivalsChanged();
}

std::optional<Hints> Scheduler::GetHints(QueueId id) const {
  QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  if (queue == nullptr) return std::nullopt;
  return queue->hints;
}

void Scheduler::SetPolicy(const PolicySetting& setting) {
  if (impl_ == nullptr || impl_->policy == setting) return;
  impl_->policy = setting;
  auto clear = [](PolicyState(&states)[kMostPolicies]) {
    for (PolicyState& state : states) state.Clear();
  };
  for (DeviceRecord* device : impl_->devices) {
    device->RivalsChanged();
    clear(device->policy_states);
    for (ProcessRecord* process : device->slices.processes()) {
      clear(process->policy_states);
      clear(process->view_states);
    }
    for (TenantRecord* tenant : device->tenants) {
      clear(tenant->policy_states);
      clear(tenant->view_states);
    }
    for (QueueRecord* queue : device->queues) {
      clear(queue->policy_states);
      queue->limited_until = TimePoint{};
      queue->limited = queue->overruns = false;
      queue->newly_ready = kNewToAllPolicies;
    }
  }
}

PolicySetting Scheduler::setting() const {
  return impl_ == nullptr ? PolicySetting(*FindPolicy(kDefaultPolicy)) : impl_->policy;
}

void Scheduler::SetTimeslice(Duration timeslice) {
  if (impl_ == nullptr) return;
  impl_->config.timeslice = std::clamp<Duration>(timeslice, std::chrono::microseconds(TIMESLICE_MIN),
                                                 std::chrono::microseconds(TIMESLICE_MAX));
  impl_->DirtyAll();
}

Duration Scheduler::timeslice() const { return impl_ == nullptr ? Duration{} : impl_->config.timeslice; }

void Scheduler::SetAtATime(size_t queues) {
  if (impl_ == nullptr) return;
  impl_->config.at_a_time = std::clamp<size_t>(queues, 1, kMostAtATime);
  for (const auto& device : impl_->devices) device->slices.Changed();
  impl_->DirtyAll();
}

size_t Scheduler::at_a_time() const { return impl_ == nullptr ? 1 : impl_->config.at_a_time; }

// ---- accounting ----

// If the scheduler did not run for a while, answers may be unread. That time does not count as silence.
void Scheduler::Impl::Forgive(TimePoint now) {
  if (decide_at == kNever || now <= decide_at + kLate) return;
  for (DeviceRecord* device : devices) {
    for (QueueRecord* queue : device->queues) queue->watch.Forgive(now - decide_at);
    device->silence.Forgive(now - decide_at);
  }
}

// ---- decisions ----

// All devices that are due take each step together: observe what time has changed; find each queue's urgency;
// ask the policy; run what those queues wait for; choose whose turn it is; report changes, and find out when
// to decide again.
TimePoint Scheduler::Decide(TimePoint now, ControlSink& sink) {
  if (impl_ == nullptr) return kNever;
  if (!impl_->IsAnythingDue(now)) return impl_->decide_at;
  impl_->Forgive(now);
  if (impl_->ChooseDevices(now)) {
    auto for_each_due = [this](auto&& step) {
      for (DeviceRecord* device : impl_->devices) {
        if (device->due) step(*device);
      }
    };
    const PolicySetting& policy = impl_->policy;
    const Granularity by = policy.layers()[0].by;
    const bool waits = impl_->waits.any();
    const auto observe = [&] {
      for_each_due([&](DeviceRecord& device) {
        if (!device.observed) impl_->Observe(device, now, sink);
      });
      impl_->FollowLeaders(now, sink);
      if (waits) {
        impl_->waits.ForgetPassed();
        impl_->waits.InheritPriorities(by);
      }
      for_each_due([&](DeviceRecord& device) { Windows::Find(policy, device); });
    };
    impl_->RefreshAllRivals();
    observe();
    const bool held_elsewhere = impl_->long_held.Find(now);
    if (impl_->windows.ChooseWide(policy) || held_elsewhere) {
      for (DeviceRecord* device : impl_->devices) device->due = true;
      observe();
    }
    for_each_due([&](DeviceRecord& device) {
      impl_->windows.Release(policy, device);
      device.asks = impl_->PoliciesDecide(device);
    });
    impl_->AskPolicies(now);
    if (waits) impl_->waits.InheritRuns();
    for_each_due([&](DeviceRecord& device) {
      device.slices_at = device.slices.Observe(device.active, device.released_for.valid, now, sink);
    });
    impl_->turns_at = impl_->turns.Update(impl_->devices, now, impl_->config.timeslice);
    for_each_due([&](DeviceRecord& device) {
      device.slices.Report(device.id, device.released_for.hints.For(by).priority, now, sink);
      device.decide_at = std::min({impl_->controls.Apply(policy, device, now, sink), device.policy_at,
                                   device.slices_at, device.slices.refresh_at()});
      device.dirty = device.due = device.observed = false;
    });
    for (DeviceRecord* device : impl_->devices) device->dirty |= device->slices.is_behind();
    if (impl_->long_held.Find(now)) impl_->DirtyAll();
    impl_->ForgetEmptyDevices();
  } else {
    impl_->AskForProgress(now, sink);
  }
  impl_->decide_at = impl_->turns_at;
  for (const DeviceRecord* device : impl_->devices) {
    const TimePoint at = std::min({device->decide_at, device->watch_at, device->ask_at});
    impl_->decide_at = std::min(impl_->decide_at, device->dirty ? now : at);
  }
  return impl_->decide_at;
}

// Most of what a client reports changes nothing for a decision.
bool Scheduler::Impl::IsAnythingDue(TimePoint now) const {
  if (now >= decide_at) return true;
  for (const DeviceRecord* device : devices) {  // std::any_of is made for many
    if (device->dirty) return true;
  }
  return false;
}

// Returns false if no device is due. All devices are decided together if a policy compares the queues of all
// devices, and those between which queues wait.
bool Scheduler::Impl::ChooseDevices(TimePoint now) {
  bool any = false;
  for (DeviceRecord* device : devices) {
    device->due = device->dirty || now >= std::min(device->decide_at, device->watch_at) ||
                  (now >= turns_at && device->slices.take_turns()) ||
                  (now >= device->ask_at && !MayOnlyAsk(*device));
    any |= device->due;
  }
  for (DeviceRecord* device : devices) device->due |= any && now >= device->ask_at;
  if (any && policy.ComparesAllDevices()) {
    for (DeviceRecord* device : devices) device->due = true;
  }
  if (any && waits.any()) waits.ChooseTogether();
  return any;
}

// A question for progress changes nothing of who runs. True if nothing else has come with the time that has
// passed: a policy's new decision would be the one that stands.
bool Scheduler::Impl::MayOnlyAsk(const DeviceRecord& device) const {
  return policy.IsSteady() && !policy.ComparesAllDevices() && !device.waits && !device.waits_across &&
         !long_held.any() && !device.released_for.valid && !device.slices.beside_holding();
}

void Scheduler::Impl::AskForProgress(TimePoint now, ControlSink& sink) {
  for (DeviceRecord* device : devices) {
    if (now < device->ask_at) continue;
    Account(*device, now);
    controls.StepWatches(*device, now, sink);
  }
}

void Scheduler::Impl::RefreshAllRivals() {
  if (!policy.ComparesAllDevices()) {
    for (DeviceRecord* device : devices) {
      if (device->due && device->rivals_changed) RefreshRivals(policy, {&device, 1}, former_rivals);
    }
    return;
  }
  auto changed = [](const DeviceRecord* device) { return device->rivals_changed; };
  if (std::any_of(devices.begin(), devices.end(), changed)) RefreshRivals(policy, devices, former_rivals);
}

// Brings up to date what changes with time.
void Scheduler::Impl::Observe(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  device.observed = true;
  Account(device, now);
  for (QueueRecord* queue : device.active) {
    if (queue->state == QueueState::kLingering && now >= queue->pauses.IdleAt(GraceOf(*queue, config))) {
      queue->state = QueueState::kIdle;
      queue->running = false;
      SetChosen(*queue, false, now);
      queue->held_since = kNever;
      SetCharge(*queue, Charge::kNothing, now);
    }
    if (!queue->watch.rests()) queue->incidents += queue->watch.Age(now, config);
    queue->priority = queue->hints.priority;
  }
  if (now >= device.silence.Until(config)) Windows::LetGo(device, config, now);
  if (now >= device.slices.refresh_at()) RefreshSlices(device, sink);
}

void Scheduler::Impl::RefreshSlices(DeviceRecord& device, ControlSink& sink) {
  device.slices.Refresh(policy, config.at_a_time, device.id, device.queues, turns, sink);
  refreshed = true;
}

// Finds out on which devices the processes take turns because they do on another one.
void Scheduler::Impl::FollowLeaders(TimePoint now, ControlSink& sink) {
  if (!std::exchange(refreshed, false)) return;
  for (DeviceRecord* device : devices) {
    const DeviceRecord* leader = nullptr;
    if (device->slices.may_follow()) {
      for (const DeviceRecord* other : devices) {
        if (other != device && other->slices.leads() && device->slices.Meeting(*other, turns) > 1)
          leader = other;
      }
    }
    device->slices.Follow(leader);
    if (now < device->slices.refresh_at()) continue;
    device->due = true;
    if (device->observed) {
      RefreshSlices(*device, sink);
    } else {
      Observe(*device, now, sink);  // refreshes them as well
    }
  }
  refreshed = false;
}

// ---- which queues run ----

// False: every queue of the device runs.
bool Scheduler::Impl::PoliciesDecide(const DeviceRecord& device) const {
  if (device.slices.replace_holding()) return false;
  if (!device.released_for.valid) return true;
  return std::any_of(device.active.begin(), device.active.end(), [&](const QueueRecord* queue) {
    return queue->IsEligible() && policy.HasBetterClaim(ClaimOf(*queue).hints, device.released_for.hints);
  });
}

// Each policy of the chain decides on all devices before the next one does.
void Scheduler::Impl::AskPolicies(TimePoint now) const {
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    device->policy_at = kNever;
    if (!policy.HasLimits()) continue;
    for (QueueRecord* queue : device->active) {
      // A limit holds in the watchdog's windows as well. It ends by itself.
      if (device->asks || queue->limited_until <= now) queue->limited_until = TimePoint{};
      queue->limited = queue->limited_until > now;
    }
  }
  for (int round = 0; round < kMostRounds && AskPoliciesOnce(now); ++round) {
  }
}

// Asks about the queues that have not used up their limits. True: all that a policy has let run have used
// them up now, and there are others.
bool Scheduler::Impl::AskPoliciesOnce(TimePoint now) const {
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    for (QueueRecord* queue : device->active) {
      queue->run = queue->limited_until <= now;
      queue->chosen = false;
    }
  }
  for (size_t layer = 0; layer < policy.layers().size(); ++layer) {
    const auto& [asked, by] = policy.layers()[layer];
    const bool all_devices = asked->info().scope == Scope::kAllDevices;
    const Priority highest_of_all = all_devices ? HighestOfAll(by) : PRIORITY_NO_EXECUTE;
    for (DeviceRecord* device : devices) {
      if (!device->due || !device->asks) continue;
      // What the policies behind it make of those that run in the gaps, it cannot know.
      const bool gaps = layer + 1 == policy.layers().size();
      MakeViews(*device, now, layer, by, asked->info().sees_processes, gaps);
      if (device->views.empty()) continue;
      const DeviceView view{
          .now = now,
          .timeslice = config.timeslice * (device->slices.take_turns() ? kSlicesOfTurn : 1),
          .at_a_time = config.at_a_time,
          .ready = device->views,
          .state = &device->policy_states[layer],
          .highest_of_all = highest_of_all,
          .least_turn = device->slices.take_turns() ? kLeastTurnOnDevice : Duration::zero()};
      device->policy_at = std::min(device->policy_at, asked->Decide(view));
      TakeDecision(*device, layer, by);
    }
  }
  return policy.HasLimits() && AnyLimitReached(now);
}

bool Scheduler::Impl::AnyLimitReached(TimePoint now) const {
  bool again = false;
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    bool runs = false;
    bool limited_now = false;
    bool others = false;
    for (QueueRecord* queue : device->active) {
      const bool was_shown = !queue->limited;
      queue->limited = queue->limited_until > now;
      if (!queue->IsEligible()) continue;
      runs |= queue->run;
      limited_now |= queue->limited && was_shown;
      others |= !queue->limited;
    }
    again |= !runs && limited_now && others;
  }
  return again;
}

// Of the queues that the former policies let run.
Priority Scheduler::Impl::HighestOfAll(Granularity by) const {
  Priority highest = PRIORITY_NO_EXECUTE;
  for (const DeviceRecord* device : devices) {
    for (const QueueRecord* queue : device->active) {
      if (queue->run && queue->IsEligible()) highest = std::max(highest, PriorityFor(*queue, by));
    }
  }
  return highest;
}

Control Scheduler::GetControl(QueueId id) const {
  const QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  return queue == nullptr ? Control{} : queue->control;
}

std::optional<QueueStats> Scheduler::Stats(QueueId id, TimePoint now) const {
  const QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  if (queue == nullptr) return std::nullopt;
  return StatsOf(impl_->policy, *queue, now);
}

}  // namespace xsched::sched
