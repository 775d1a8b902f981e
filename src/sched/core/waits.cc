#include "sched/core/waits.h"

#include <algorithm>

#include "sched/core/active_queues.h"

namespace xsched::sched {
namespace {

// Inheritance reaches through so many waits. In a longer chain the watchdog ends the wait: a client that
// builds one does not make the decisions for all others slow.
constexpr int kLongestChain = 16;

void Mark(const QueueRecord& waiter, const QueueRecord& owner) {
  waiter.device->waits = true;
  if (waiter.device != owner.device) waiter.device->waits_across = owner.device->waits_across = true;
}

}  // namespace

bool Waits::HasPassed(const Dependency& dependency) const {
  const QueueRecord* owner = queues_.Find(static_cast<uint64_t>(dependency.queue));
  return owner == nullptr || owner->retired >= dependency.until;
}

bool Waits::Set(QueueRecord& waiter, std::span<const Dependency> dependencies) {
  int count = 0;
  bool changed = false;
  for (const Dependency& dependency : dependencies) {
    if (count == kMaxDependencies || HasPassed(dependency)) continue;
    Dependency& known = waiter.waits[count].dependency;
    changed |=
        count >= waiter.wait_count || known.queue != dependency.queue || known.until != dependency.until;
    known = dependency;
    ++count;
  }
  changed |= count != waiter.wait_count;
  waiter.wait_count = count;
  if (changed) {
    for (int i = 0; i < count; ++i)
      Mark(waiter, *queues_.Find(static_cast<uint64_t>(waiter.waits[i].dependency.queue)));
    waiter.device->waits = true;  // also if it was the last one: ForgetPassed makes it exact
  }
  return changed;
}

void Waits::ChooseTogether() const {
  const bool together = std::any_of(devices_.begin(), devices_.end(), [](const DeviceRecord* device) {
    return device->due && device->waits_across;
  });
  if (!together) return;
  for (DeviceRecord* device : devices_) device->due |= device->waits_across;
}

void Waits::ForgetPassed() const {
  for (DeviceRecord* device : devices_) {
    device->forgets = device->due && (device->waits || device->waits_across);
    if (!device->forgets) continue;
    device->waits = device->waits_across = false;
    ActivateAll(*device);
    for (QueueRecord* queue : device->queues) queue->awaited = false;
  }
  for (DeviceRecord* device : devices_) {
    if (!device->forgets) continue;
    for (QueueRecord* waiter : device->queues) {
      int kept = 0;
      for (int i = 0; i < waiter->wait_count; ++i) {
        const Dependency dependency = waiter->waits[i].dependency;
        if (HasPassed(dependency)) continue;
        QueueRecord* owner = queues_.Find(static_cast<uint64_t>(dependency.queue));
        waiter->waits[kept++] = {dependency, owner};
        owner->awaited = true;
        Mark(*waiter, *owner);
      }
      waiter->wait_count = kept;
    }
  }
}

// Calls inherit(waiter, owner) for each waiter with work, until it returns false for all of them. It returns
// whether it changed anything. A stalled waiter counts as well: it is stalled because it waits.
template <typename Inherit>
void Waits::AlongWaits(Inherit&& inherit) const {
  bool changed = true;
  for (int length = 0; changed && length < kLongestChain; ++length) {
    changed = false;
    for (const DeviceRecord* device : devices_) {
      if (!device->due || !device->waits) continue;
      for (const QueueRecord* waiter : device->queues) {
        if (waiter->state == QueueState::kIdle || waiter->absent) continue;
        for (int i = 0; i < waiter->wait_count; ++i) changed |= inherit(*waiter, *waiter->waits[i].owner);
      }
    }
  }
}

void Waits::InheritPriorities(Granularity by) const {
  AlongWaits([by](const QueueRecord& waiter, QueueRecord& owner) {
    const Priority priority = PriorityFor(waiter, by);
    if (PriorityFor(owner, by) >= priority) return false;
    owner.priority = priority;
    return true;
  });
}

// A queue that a running one waits for must run, whatever the policy says. But a limit that was asked for
// holds for those that wait as well: it ends by itself.
void Waits::InheritRuns() const {
  AlongWaits([](const QueueRecord& waiter, QueueRecord& owner) {
    if (!waiter.run || owner.run || owner.limited) return false;
    owner.run = true;
    owner.runs_for_own = waiter.process->id == owner.process->id;
    return true;
  });
}

}  // namespace xsched::sched
