#include "sched/core/scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sched/core/accounting.h"
#include "sched/core/active_queues.h"
#include "sched/core/queue_stats.h"
#include "sched/core/reservation.h"
#include "sched/core/scheduler_impl.h"

namespace xsched::sched {

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
  impl_->windows.JobChanged(process);
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
  for (DeviceRecord* device : impl_->devices) {
    if (ProcessRecord* record = device->slices.Find(process); record != nullptr) record->ended = true;
  }
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
  for (const QueueRecord** known : {&device.leader, &device.awaited, &device.awaits}) {
    if (*known == queue) *known = nullptr;
  }
  device.queues.Remove(device.PlaceOf(id));
  if (queue->process->queues == 1 && !queue->traits.sliceable)
    impl_->former_rivals.Left({queue->process->id, device.id, queue->hints});
  device.slices.QueueGone(*queue->process, impl_->policy.ShowsProcesses(), now);
  delete queue;
  device.dirty = device.rivals_changed = true;
}

void Scheduler::Impl::DirtyAll() {
  for (DeviceRecord* device : devices) device->dirty = true;
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
  queue->newly_ready |= impl_->policy.LayersThatTellApart(queue->hints, hints);
  queue->hints = hints;
  Activate(*queue);
  queue->device->RivalsChanged();
}

void Scheduler::ExpectHints(TenantId tenant) {
  if (impl_ == nullptr) return;
  for (DeviceRecord* device : impl_->devices) {
    const auto has_it = [tenant](const TenantRecord* record) { return record->id == tenant; };
    if (std::any_of(device->tenants.begin(), device->tenants.end(), has_it)) ActivateAll(*device);
  }
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
  queue->newly_ready |= impl_->policy.LayersThatTellApart(queue->facts, facts);
  queue->facts = facts;
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
  impl_->windows.PolicyChanged();
  auto clear = [](PolicyState(&states)[kMostPolicies]) {
    for (PolicyState& state : states) state.Clear();
  };
  for (DeviceRecord* device : impl_->devices) {
    device->RivalsChanged();
    clear(device->policy_states);
    for (ProcessRecord* process : device->slices.all()) {
      clear(process->policy_states);
      clear(process->view_states);
    }
    for (TenantRecord* tenant : device->tenants) {
      clear(tenant->policy_states);
      clear(tenant->view_states);
    }
    ForgetAllFormerTenants(*device);
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
