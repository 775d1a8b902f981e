#include "sched/core/scheduler.h"

#include <algorithm>
#include <new>

#include "base/pointer_map.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// How far apart questions for the progress of a queue get that shows none.
constexpr Duration kLongestAskDelay = std::chrono::milliseconds(2);
constexpr Duration kLongestAskDelayOfStalled = std::chrono::milliseconds(100);

}  // namespace

struct Scheduler::Impl {
  SchedulerConfig config;
  const Policy* policy = FindPolicy(kPolicyHighestPriorityFirst);
  PointerMap<QueueRecord> queues;
  Array<DeviceRecord*> devices;

  QueueRecord* Find(QueueId id) const { return queues.Find(static_cast<uint64_t>(id)); }
  DeviceRecord* Device(DeviceId id, TimePoint now);
  void Forget(DeviceRecord& device);

  void Account(DeviceRecord& device, TimePoint now);
  void Retire(QueueRecord& queue, uint64_t retired, TimePoint now);
  void AskFrom(QueueRecord& queue, TimePoint now) const;
  void Age(QueueRecord& queue, TimePoint now);
  TimePoint StallAt(const QueueRecord& queue) const;

  TimePoint DecideDevice(DeviceRecord& device, TimePoint now, ControlSink& sink);
  void RefreshFlags(DeviceRecord& device);
  void InheritPriorities(DeviceRecord& device);
  void InheritRuns(DeviceRecord& device);
  TimePoint AskPolicy(DeviceRecord& device, TimePoint now);
  void Apply(DeviceRecord& device, TimePoint now, ControlSink& sink);
  TimePoint AskProgress(DeviceRecord& device, TimePoint now, ControlSink& sink);
  template <typename Visit>
  void ForEachDependency(DeviceRecord& device, Visit&& visit);
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
  auto* device = new (std::nothrow) DeviceRecord;
  if (device == nullptr) return nullptr;
  device->id = id;
  device->accounted_at = now;
  if (devices.Push(device)) return device;
  delete device;
  return nullptr;
}

bool Scheduler::AddQueue(QueueId id, ProcessId process, DeviceId device_id, const Hints& hints,
                         TimePoint now) {
  if (impl_ == nullptr) return false;
  DeviceRecord* device = impl_->Device(device_id, now);
  if (device == nullptr || !device->queues.Reserve(device->queues.size() + 1)) return false;
  if (!device->views.Reserve(device->queues.size() + 1)) return false;
  auto* queue = new (std::nothrow) QueueRecord;
  if (queue == nullptr) return false;
  queue->id = id;
  queue->process = process;
  queue->device = device;
  queue->hints = hints;
  if (!impl_->queues.Insert(static_cast<uint64_t>(id), queue)) {
    delete queue;
    return false;
  }
  impl_->Account(*device, now);
  size_t at = device->queues.size();
  while (at > 0 && device->queues[at - 1]->id > id) --at;
  device->queues.Insert(at, queue);
  device->dirty = device->membership_changed = true;
  return true;
}

void Scheduler::RemoveQueue(QueueId id, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->queues.Remove(static_cast<uint64_t>(id));
  if (queue == nullptr) return;
  DeviceRecord& device = *queue->device;
  impl_->Account(device, now);
  for (size_t i = 0; i < device.queues.size(); ++i) {
    if (device.queues[i] == queue) device.queues.Remove(i);
  }
  delete queue;
  device.dirty = device.membership_changed = true;
  if (device.queues.empty()) impl_->Forget(device);
}

// Clients name devices as they like: one without queues must not stay.
void Scheduler::Impl::Forget(DeviceRecord& device) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] != &device) continue;
    devices.Remove(i);
    delete &device;
    return;
  }
}

void Scheduler::Progress(QueueId id, uint64_t submitted, uint64_t retired, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr) return;
  retired = std::min(retired, submitted);
  if (submitted == queue->submitted && retired == queue->retired) return;
  bool retired_some = retired != queue->retired;
  queue->submitted = submitted;
  if (retired_some) impl_->Retire(*queue, retired, now);

  QueueState before = queue->state;
  if (queue->Unfinished()) {
    if (before == QueueState::kReady) return;
    impl_->Account(*queue->device, now);
    queue->state = QueueState::kReady;
    impl_->AskFrom(*queue, now);
    // From lingering, it goes on as if it had never paused.
    if (before == QueueState::kIdle) {
      queue->ready_since = now;
      queue->fresh = true;
      queue->device->dirty = true;
    }
  } else if (before == QueueState::kReady || retired_some) {
    impl_->Account(*queue->device, now);
    if (before == QueueState::kIdle) {
      // It came and went between two looks.
      queue->ready_since = now;
      queue->fresh = true;
    }
    queue->state = QueueState::kLingering;
    queue->idle_since = now;
    queue->device->dirty = true;
  }
}

void Scheduler::Impl::Retire(QueueRecord& queue, uint64_t retired, TimePoint now) {
  queue.retired = retired;
  // Only the time since it was asked says how slow it is: before that, nobody may have cared to look.
  if (queue.asked_at != kNever) queue.slowest_answer = std::max(queue.slowest_answer, now - queue.asked_at);
  AskFrom(queue, now);
  if (queue.stalled) {
    Account(*queue.device, now);
    queue.stalled = false;
    queue.fresh = true;
    queue.device->dirty = true;
  }
  if (queue.device->dependencies) queue.device->dirty = true;
}

void Scheduler::SetDependencies(QueueId waiter, std::span<const Dependency> dependencies) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(waiter);
  if (queue == nullptr) return;
  if (dependencies.empty() && queue->dependency_count == 0) return;
  queue->dependency_count = 0;
  for (const Dependency& dependency : dependencies) {
    if (queue->dependency_count == kMaxDependencies) break;
    queue->dependencies[queue->dependency_count++] = dependency;
  }
  queue->device->dirty = true;
  queue->device->dependencies = true;
}

void Scheduler::SetAbsent(QueueId id, bool absent, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->absent == absent) return;
  impl_->Account(*queue->device, now);
  queue->absent = absent;
  queue->stalled = false;
  queue->fresh = true;
  queue->device->dirty = true;
}

void Scheduler::SetHints(QueueId id, const Hints& hints) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || queue->hints == hints) return;
  queue->hints = hints;
  queue->device->dirty = queue->device->membership_changed = true;
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
    device->dirty = device->membership_changed = true;
    for (QueueRecord* queue : device->queues) {
      queue->note = 0;
      queue->fresh = true;
    }
  }
}

const Policy& Scheduler::policy() const {
  return impl_ == nullptr ? *FindPolicy(kPolicyHighestPriorityFirst) : *impl_->policy;
}

void Scheduler::SetTimeslice(Duration timeslice) {
  if (impl_ == nullptr) return;
  impl_->config.timeslice = std::clamp<Duration>(timeslice, std::chrono::microseconds(TIMESLICE_MIN),
                                                 std::chrono::microseconds(TIMESLICE_MAX));
  for (DeviceRecord* device : impl_->devices) device->dirty = true;
}

Duration Scheduler::timeslice() const { return impl_ == nullptr ? Duration{} : impl_->config.timeslice; }

// ---- accounting ----

// Gives out the time since the last call, by the states that held until now.
void Scheduler::Impl::Account(DeviceRecord& device, TimePoint now) {
  Duration elapsed = now - device.accounted_at;
  if (elapsed <= Duration::zero()) return;
  device.accounted_at = now;
  int sharing = 0;
  for (const QueueRecord* queue : device.queues) sharing += queue->running && queue->Takes();
  for (QueueRecord* queue : device.queues) {
    if (!queue->Takes()) continue;
    if (queue->running) {
      queue->service += elapsed / sharing;
    } else if (!queue->control.run) {
      queue->waiting += elapsed;
    }
  }
}

// Nobody has asked yet; do so when nothing has been heard for a while.
void Scheduler::Impl::AskFrom(QueueRecord& queue, TimePoint now) const {
  queue.ask_delay = config.query_after;
  queue.ask_at = now + queue.ask_delay;
  queue.asked_at = kNever;
}

// When a running queue that others wait for counts as stalled, if it shows no progress.
TimePoint Scheduler::Impl::StallAt(const QueueRecord& queue) const {
  if (queue.asked_at == kNever) return kNever;
  return queue.asked_at +
         std::clamp(queue.slowest_answer * 2, config.stall_min, std::max(config.stall_min, config.stall_max));
}

// What time alone changes.
void Scheduler::Impl::Age(QueueRecord& queue, TimePoint now) {
  if (queue.state == QueueState::kLingering && now >= queue.idle_since + config.grace) {
    queue.state = QueueState::kIdle;
    queue.running = false;
  }
  if (queue.running && now >= StallAt(queue)) {
    queue.stalled = true;
    queue.running = false;
    ++queue.incidents;
  }
}

// ---- decisions ----

TimePoint Scheduler::Decide(TimePoint now, ControlSink& sink) {
  if (impl_ == nullptr) return kNever;
  TimePoint ask_at = kNever;
  for (DeviceRecord* device : impl_->devices) {
    if (device->dirty || now >= device->ask_at) device->ask_at = impl_->DecideDevice(*device, now, sink);
    ask_at = std::min(ask_at, device->ask_at);
  }
  return ask_at;
}

TimePoint Scheduler::Impl::DecideDevice(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  Account(device, now);
  device.dirty = false;
  for (QueueRecord* queue : device.queues) Age(*queue, now);
  if (device.membership_changed) RefreshFlags(device);
  InheritPriorities(device);
  TimePoint ask_at = AskPolicy(device, now);
  InheritRuns(device);
  Apply(device, now, sink);

  ask_at = std::min(ask_at, AskProgress(device, now, sink));
  for (const QueueRecord* queue : device.queues) {
    if (queue->state == QueueState::kLingering) ask_at = std::min(ask_at, queue->idle_since + config.grace);
    if (queue->running) ask_at = std::min(ask_at, StallAt(*queue));
  }
  return ask_at;
}

// Who may be held by whom depends on hints alone, and few of them differ: ask once per distinct pair.
void Scheduler::Impl::RefreshFlags(DeviceRecord& device) {
  device.membership_changed = false;
  struct Group {
    Hints hints;
    size_t count;
    bool gated;
    bool tracked;
  };
  Array<Group> groups;
  for (const QueueRecord* queue : device.queues) {
    Group* group = std::find_if(groups.begin(), groups.end(),
                                [queue](const Group& other) { return other.hints == queue->hints; });
    if (group != groups.end()) {
      ++group->count;
    } else if (!groups.Push(Group{queue->hints, 1, false, false})) {
      return;  // out of memory: flags stay as they are
    }
  }
  for (Group& victim : groups) {
    for (Group& rival : groups) {
      if (&victim == &rival && victim.count == 1) continue;
      if (!policy->CanHold(victim.hints, rival.hints)) continue;
      victim.gated = victim.tracked = true;
      rival.tracked = true;
    }
  }
  for (QueueRecord* queue : device.queues) {
    const Group* group = std::find_if(groups.begin(), groups.end(),
                                      [queue](const Group& other) { return other.hints == queue->hints; });
    if (queue->control.gated != group->gated || queue->control.tracked != group->tracked)
      queue->flags_changed = true;
    queue->control.gated = group->gated;
    queue->control.tracked = group->tracked;
  }
}

// Calls visit(waiter, owner) for each wait that has not passed.
template <typename Visit>
void Scheduler::Impl::ForEachDependency(DeviceRecord& device, Visit&& visit) {
  for (QueueRecord* waiter : device.queues) {
    if (!waiter->Takes()) continue;
    for (int i = 0; i < waiter->dependency_count; ++i) {
      const Dependency& dependency = waiter->dependencies[i];
      QueueRecord* owner = Find(dependency.queue);
      if (owner != nullptr && owner->retired < dependency.until) visit(*waiter, *owner);
    }
  }
}

// A queue is as urgent as the most urgent one that waits for it. Priorities only rise, so cycles come to
// rest.
void Scheduler::Impl::InheritPriorities(DeviceRecord& device) {
  for (QueueRecord* queue : device.queues) queue->priority = queue->hints.priority;
  bool any = device.dependencies;
  bool changed = any;
  while (changed) {
    any = changed = false;
    ForEachDependency(device, [&](QueueRecord& waiter, QueueRecord& owner) {
      any = true;
      if (owner.priority >= waiter.priority) return;
      owner.priority = waiter.priority;
      // On another device it competes there.
      if (owner.device != &device) owner.device->dirty = true;
      changed = true;
    });
    if (!any) device.dependencies = false;
  }
}

// Holding a queue must never hold what a running one needs, whatever the policy says.
void Scheduler::Impl::InheritRuns(DeviceRecord& device) {
  bool changed = device.dependencies;
  while (changed) {
    changed = false;
    ForEachDependency(device, [&](QueueRecord& waiter, QueueRecord& owner) {
      if (!waiter.run || owner.run) return;
      owner.run = true;
      changed = true;
    });
  }
}

TimePoint Scheduler::Impl::AskPolicy(DeviceRecord& device, TimePoint now) {
  device.views.Clear();
  for (QueueRecord* queue : device.queues) {
    queue->run = true;
    if (!queue->Takes()) continue;
    [[maybe_unused]] bool pushed = device.views.Push(QueueView{
        queue->id, queue->process, queue->hints, queue->priority, queue->ready_since, queue->running,
        queue->running_since, queue->service, queue->fresh, queue->note, true});  // reserved by AddQueue
  }
  TimePoint ask_at = device.views.empty() ? kNever : policy->Decide(now, config.timeslice, device.views);
  size_t next = 0;
  for (QueueRecord* queue : device.queues) {
    if (!queue->Takes()) continue;
    const QueueView& view = device.views[next++];
    queue->run = view.run;
    queue->note = view.note;
    queue->fresh = false;
  }
  return ask_at;
}

// Reports what has changed: holds first, so that who is let run finds the device free.
void Scheduler::Impl::Apply(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  device.anybody_held = false;
  for (bool run : {false, true}) {
    for (QueueRecord* queue : device.queues) {
      if (queue->run != run) continue;
      if (!run) device.anybody_held = true;
      if (queue->control.run != run || queue->flags_changed) {
        queue->holds += queue->control.run && !run;
        queue->control.run = run;
        queue->flags_changed = false;
        sink.SetControl(queue->id, queue->control);
      }
      bool running = run && queue->Takes();
      if (running && !queue->running) {
        queue->running_since = now;
        AskFrom(*queue, now);
      }
      queue->running = running;
    }
  }
}

// Asks queues for their progress, ever less often while there is none: those that others are held for, and
// stalled ones, which regain their claim by it. Returns when to ask again.
TimePoint Scheduler::Impl::AskProgress(DeviceRecord& device, TimePoint now, ControlSink& sink) {
  TimePoint next = kNever;
  for (QueueRecord* queue : device.queues) {
    bool matters = queue->stalled ? !queue->absent : queue->running && device.anybody_held;
    if (!matters || queue->state != QueueState::kReady || !queue->control.tracked) {
      queue->asked_at = kNever;
      continue;
    }
    if (now >= queue->ask_at) {
      sink.Query(queue->id);
      queue->asked_at = std::min(queue->asked_at, now);
      queue->ask_at = now + queue->ask_delay;
      queue->ask_delay =
          std::min(queue->ask_delay * 2, queue->stalled ? kLongestAskDelayOfStalled : kLongestAskDelay);
    }
    next = std::min(next, queue->ask_at);
  }
  return next;
}

std::optional<QueueStats> Scheduler::Stats(QueueId id, TimePoint now) const {
  QueueRecord* queue = impl_ == nullptr ? nullptr : impl_->Find(id);
  if (queue == nullptr) return std::nullopt;
  impl_->Account(*queue->device, now);
  QueueStats stats;
  stats.state = queue->state;
  stats.stalled = queue->stalled;
  stats.control = queue->control;
  stats.submitted = queue->submitted;
  stats.retired = queue->retired;
  stats.service = queue->service;
  stats.waiting = queue->waiting;
  stats.holds = queue->holds;
  stats.incidents = queue->incidents;
  return stats;
}

}  // namespace xsched::sched
