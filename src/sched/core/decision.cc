// A decision: which queues run, on all devices for which something has changed.
#include <algorithm>
#include <utility>

#include "sched/core/accounting.h"
#include "sched/core/rivals.h"
#include "sched/core/scheduler_impl.h"

namespace xsched::sched {
namespace {

// If a decision is this much later than it was due, the scheduler itself did not run.
constexpr Duration kLate = std::chrono::milliseconds(10);

// How many devices without queues are kept, because something is remembered of their tenants or processes.
constexpr size_t kMostEmptyDevices = 64;

}  // namespace

TimePoint Scheduler::Decide(TimePoint now, ControlSink& sink) {
  if (impl_ == nullptr) return kNever;
  if (!impl_->IsAnythingDue(now)) return impl_->decide_at;
  impl_->Forgive(now);
  if (impl_->ChooseDevices(now)) {
    impl_->DecideDue(now, sink);
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

// If the scheduler did not run for a while, answers may be unread. That time does not count as silence.
void Scheduler::Impl::Forgive(TimePoint now) {
  if (decide_at == kNever || now <= decide_at + kLate) return;
  for (DeviceRecord* device : devices) {
    for (QueueRecord* queue : device->queues) queue->watch.Forgive(now - decide_at);
    device->silence.Forgive(now - decide_at);
  }
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

template <typename Step>
void Scheduler::Impl::ForEachDue(Step&& step) const {
  for (DeviceRecord* device : devices) {
    if (device->due) step(*device);
  }
}

// All devices that are due take each step together.
void Scheduler::Impl::DecideDue(TimePoint now, ControlSink& sink) {
  RefreshAllRivals();
  ObserveDue(now, sink);
  const bool held_elsewhere = long_held.Find(now);
  if (windows.CollectWide(policy) || held_elsewhere) {
    for (DeviceRecord* device : devices) device->due = true;
    ObserveDue(now, sink);
    windows.CollectWide(policy);
  }
  ChooseQueues(now);
  ChooseProcesses(now, sink);
  Report(now, sink);
  if (long_held.Find(now)) DirtyAll();
  ForgetEmptyDevices();
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

// What time has changed, and how urgent each queue is now.
void Scheduler::Impl::ObserveDue(TimePoint now, ControlSink& sink) {
  ForEachDue([&](DeviceRecord& device) {
    if (!device.observed) Observe(device, now, sink);
  });
  FollowLeaders(now, sink);
  if (waits.any()) {
    waits.ForgetPassed();
    waits.InheritPriorities(policy.layers()[0].by);
  }
  ForEachDue([&](DeviceRecord& device) { Windows::Find(policy, device); });
}

// Brings up to date what changes with time.
void Scheduler::Impl::Observe(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  device.observed = true;
  device.watched = false;
  Account(device, now);
  for (QueueRecord* queue : device.active) {
    if (queue->state == QueueState::kLingering && now >= queue->pauses.IdleAt(GraceOf(*queue, config))) {
      queue->state = QueueState::kIdle;
      queue->running = false;
      SetChosen(*queue, false, now);
      queue->held_since = kNever;
      SetCharge(*queue, Charge::kNothing, now);
    }
    if (!queue->watch.rests()) {
      device.watched = true;
      queue->incidents += queue->watch.Age(now, config);
    }
    queue->priority = queue->hints.priority;
  }
  if (now >= device.silence.Until(config)) Windows::LetGo(device, config, now);
  if (now >= device.slices.refresh_at()) RefreshSlices(device, now, sink);
}

void Scheduler::Impl::RefreshSlices(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  device.slices.Refresh(policy, config.at_a_time, device.id, device.queues, turns, now, sink);
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
      RefreshSlices(*device, now, sink);
    } else {
      Observe(*device, now, sink);  // refreshes them as well
    }
  }
  refreshed = false;
}

// By the policies; and what those queues wait for runs as well.
void Scheduler::Impl::ChooseQueues(TimePoint now) {
  ForEachDue([&](DeviceRecord& device) {
    windows.Release(policy, device, now);
    device.asks = PoliciesDecide(device);
  });
  AskPolicies(now);
  if (waits.any()) waits.InheritRuns();
  AskWhenLimitsEnd(now);
}

// False: every queue of the device runs.
bool Scheduler::Impl::PoliciesDecide(const DeviceRecord& device) const {
  if (device.slices.replace_holding()) return false;
  if (!device.released_for.valid) return true;
  return std::any_of(device.active.begin(), device.active.end(), [&](const QueueRecord* queue) {
    return queue->IsEligible() && policy.HasBetterClaim(ClaimOf(*queue).hints, device.released_for.hints);
  });
}

// Whose turn it is, where only one of several processes can be on a device at a time.
void Scheduler::Impl::ChooseProcesses(TimePoint now, ControlSink& sink) {
  ForEachDue([&](DeviceRecord& device) {
    device.slices_at = device.slices.Observe(device.active, device.released_for.valid, now, sink);
  });
  turns_at = turns.Update(devices, now, config.timeslice);
}

// What has changed, and when to decide again.
void Scheduler::Impl::Report(TimePoint now, ControlSink& sink) {
  const Granularity by = policy.layers()[0].by;
  ForEachDue([&](DeviceRecord& device) {
    device.slices.Report(device.id, device.released_for.hints.For(by).priority, now, sink);
    // Only policies that decide about processes or tenants remember something of them.
    if (!policy.ShowsProcesses()) ForgetAllFormerTenants(device);
    device.decide_at =
        std::min({controls.Apply(policy, device, now, sink), device.policy_at, device.slices_at,
                  device.slices.refresh_at(), device.release_at, ForgetFormerTenants(device, now)});
    device.dirty = device.due = device.observed = false;
  });
  for (DeviceRecord* device : devices) device->dirty |= device->slices.is_behind();
}

// Clients choose the names of devices. So a device without queues is removed once its slices are given back,
// and nothing is remembered there: otherwise the list could grow without bound.
void Scheduler::Impl::ForgetEmptyDevices() {
  const auto is_empty = [](const DeviceRecord& device) {
    return device.queues.empty() && device.slices.none();
  };
  size_t kept = 0;
  for (size_t i = devices.size(); i-- > 0;) {
    if (!is_empty(*devices[i])) continue;
    if (devices[i]->slices.all().empty() && devices[i]->former_tenants.empty()) {
      RemoveDevice(i);
    } else {
      ++kept;
    }
  }
  for (; kept > kMostEmptyDevices; --kept) {
    size_t oldest = devices.size();
    for (size_t i = 0; i < devices.size(); ++i) {
      if (!is_empty(*devices[i])) continue;
      // The time of its last decision is near enough to that at which its last queue went.
      if (oldest == devices.size() || devices[i]->accounted_at < devices[oldest]->accounted_at) oldest = i;
    }
    RemoveDevice(oldest);
  }
}

void Scheduler::Impl::RemoveDevice(size_t index) {
  delete devices[index];
  devices.Remove(index);
}

}  // namespace xsched::sched
