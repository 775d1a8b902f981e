#include "sched/core/scheduler.h"

#include <algorithm>
#include <new>

#include "base/pointer_map.h"
#include "sched/core/queue_record.h"
#include "sched/core/waits.h"

namespace xsched::sched {
namespace {

// How far apart questions for the progress of a queue get that shows none.
constexpr Duration kLongestAskDelay = std::chrono::milliseconds(2);
constexpr Duration kLongestAskDelayOfStalled = std::chrono::milliseconds(100);
// A queue that came back at once from a pause that was taken for long must make so many times more long ones
// before the next is, up to so many in a row.
constexpr int kHarderToTrust = 4;
constexpr int kHardestToTrust = 4096;

}  // namespace

struct Scheduler::Impl {
  SchedulerConfig config;
  const Policy* policy = FindPolicy(kPolicyHighestPriorityFirst);
  PointerMap<QueueRecord> queues;
  Array<DeviceRecord*> devices;
  Waits waits{queues, devices};

  QueueRecord* Find(QueueId id) const { return queues.Find(static_cast<uint64_t>(id)); }
  DeviceRecord* Device(DeviceId id, TimePoint now);
  void ForgetEmptyDevices();
  void DirtyAll();

  void Account(DeviceRecord& device, TimePoint now);
  void Retire(QueueRecord& queue, uint64_t retired, TimePoint now);
  void AskFrom(QueueRecord& queue, TimePoint now) const;
  void LearnPause(QueueRecord& queue, TimePoint now) const;
  void Age(QueueRecord& queue, TimePoint now);
  TimePoint IdleAt(const QueueRecord& queue) const;
  TimePoint StallAt(const QueueRecord& queue) const;

  bool ChooseDevices(TimePoint now);
  void RefreshRivals(DeviceRecord& device) const;
  TimePoint AskPolicy(DeviceRecord& device, TimePoint now);
  void Apply(DeviceRecord& device, TimePoint now, ControlSink& sink) const;
  TimePoint AskProgress(DeviceRecord& device, TimePoint now, ControlSink& sink);
  TimePoint WhenToAge(const DeviceRecord& device) const;
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

bool Scheduler::AddQueue(QueueId id, ProcessId process, DeviceId device_id, const Hints& hints, TimePoint now,
                         bool sliceable) {
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
  queue->sliceable = sliceable;
  if (!impl_->queues.Insert(static_cast<uint64_t>(id), queue)) {
    delete queue;
    return false;
  }
  impl_->Account(*device, now);
  size_t at = device->queues.size();
  while (at > 0 && device->queues[at - 1]->id > id) --at;
  device->queues.Insert(at, queue);
  device->RivalsChanged();
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
  device.dirty = device.rivals_changed = true;
  device.slices.QueueGone(now);
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
  if (submitted == queue->submitted && retired == queue->retired) return;
  bool retired_some = retired != queue->retired;
  queue->submitted = submitted;
  if (retired_some) impl_->Retire(*queue, retired, now);

  QueueState before = queue->state;
  if (before != QueueState::kReady) impl_->LearnPause(*queue, now);
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
  if (queue.awaited) queue.device->dirty = true;
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
  queue->fresh = true;
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
  impl_->DirtyAll();
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

// What time alone changes.
void Scheduler::Impl::Age(QueueRecord& queue, TimePoint now) {
  if (queue.state == QueueState::kLingering && now >= IdleAt(queue)) {
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

// The devices that are due go through it in step: what time has changed; who is how urgent; whom the policy
// lets run; who must run besides; what is new to the clients, and when to look again.
TimePoint Scheduler::Decide(TimePoint now, ControlSink& sink) {
  if (impl_ == nullptr) return kNever;
  if (impl_->ChooseDevices(now)) {
    auto for_each_due = [this](auto&& step) {
      for (DeviceRecord* device : impl_->devices) {
        if (device->due) step(*device);
      }
    };
    for_each_due([&](DeviceRecord& device) {
      impl_->Account(device, now);
      for (QueueRecord* queue : device.queues) impl_->Age(*queue, now);
      if (device.rivals_changed) impl_->RefreshRivals(device);
      if (now >= device.slices.refresh_at())
        device.slices.Refresh(*impl_->policy, device.id, device.queues, sink);
      for (QueueRecord* queue : device.queues) queue->priority = queue->hints.priority;
    });
    impl_->waits.ForgetPassed();
    impl_->waits.LendPriorities();
    for_each_due([&](DeviceRecord& device) {
      TimePoint ask_at = impl_->AskPolicy(device, now);
      device.decide_at = std::min(
          ask_at, device.slices.TakeTurns(device.id, device.queues, now, impl_->config.timeslice, sink));
    });
    impl_->waits.LendRuns();
    for_each_due([&](DeviceRecord& device) {
      impl_->Apply(device, now, sink);
      device.decide_at = std::min({device.decide_at, impl_->AskProgress(device, now, sink),
                                   impl_->WhenToAge(device), device.slices.refresh_at()});
      device.dirty = false;
    });
    impl_->ForgetEmptyDevices();
  }
  TimePoint decide_at = kNever;
  for (const DeviceRecord* device : impl_->devices) decide_at = std::min(decide_at, device->decide_at);
  return decide_at;
}

// False: none is due. While a queue waits for another, which may be of another device, all are decided
// together.
bool Scheduler::Impl::ChooseDevices(TimePoint now) {
  bool any = false;
  for (DeviceRecord* device : devices) any |= device->due = device->dirty || now >= device->decide_at;
  if (any && waits.any()) {
    for (DeviceRecord* device : devices) device->due = true;
  }
  return any;
}

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
  for (const QueueRecord* queue : device.queues) {
    Group* group = std::find_if(groups.begin(), groups.end(),
                                [queue](const Group& other) { return other.hints == queue->hints; });
    if (group != groups.end()) {
      ++group->count;
    } else if (!groups.Push(Group{queue->hints, 1, false, false})) {
      return;  // out of memory: what they were is good enough
    }
  }
  for (Group& victim : groups) {
    for (Group& rival : groups) {
      if (&victim == &rival && victim.count == 1) continue;
      if (!policy->CanHold(victim.hints, rival.hints)) continue;
      victim.can_be_held = rival.can_hold = true;
    }
  }
  for (QueueRecord* queue : device.queues) {
    const Group* group = std::find_if(groups.begin(), groups.end(),
                                      [queue](const Group& other) { return other.hints == queue->hints; });
    queue->can_hold = group->can_hold;
    queue->can_be_held = group->can_be_held;
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
  if (device.views.empty() || device.slices.replace_holding()) return kNever;
  TimePoint ask_at = policy->Decide(now, config.timeslice, device.views);
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
void Scheduler::Impl::Apply(DeviceRecord& device, TimePoint now, ControlSink& sink) const {
  device.anybody_held = false;
  for (bool run : {false, true}) {
    for (QueueRecord* queue : device.queues) {
      if (queue->run != run) continue;
      if (!run) device.anybody_held = true;
      Control control;
      control.run = run;
      // Inherited urgency may hold a queue that the policy by itself would not.
      control.gated = !run || (queue->can_be_held && !device.slices.replace_holding());
      control.sliced = control.gated && device.slices.cut_short() && !queue->held_by_own;
      control.tracked = control.gated || (queue->can_hold && !device.slices.replace_holding()) ||
                        queue->awaited || queue->wait_count != 0;
      if (control != queue->control) {
        queue->holds += queue->control.run && !run;
        queue->control = control;
        sink.SetControl(queue->id, control);
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

// When time alone will have changed something.
TimePoint Scheduler::Impl::WhenToAge(const DeviceRecord& device) const {
  TimePoint at = kNever;
  for (const QueueRecord* queue : device.queues) {
    if (queue->state == QueueState::kLingering) at = std::min(at, IdleAt(*queue));
    if (queue->running) at = std::min(at, StallAt(*queue));
  }
  return at;
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
