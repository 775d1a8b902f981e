#include "sched/core/waits.h"

namespace xsched::sched {
namespace {

// What is lent reaches through so many waits. Whoever builds a longer chain waits for the watchdog, and does
// not make everybody's decisions slow.
constexpr int kLongestChain = 16;

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
  any_ |= changed;  // the next decision looks closer
  return changed;
}

void Waits::ForgetPassed() {
  if (!any_) return;
  any_ = false;
  for (DeviceRecord* device : devices_) {
    for (QueueRecord* queue : device->queues) queue->awaited = false;
  }
  for (DeviceRecord* device : devices_) {
    for (QueueRecord* waiter : device->queues) {
      int kept = 0;
      for (int i = 0; i < waiter->wait_count; ++i) {
        const Dependency dependency = waiter->waits[i].dependency;
        if (HasPassed(dependency)) continue;
        QueueRecord* owner = queues_.Find(static_cast<uint64_t>(dependency.queue));
        waiter->waits[kept++] = {dependency, owner};
        owner->awaited = true;
      }
      waiter->wait_count = kept;
      any_ |= kept != 0;
    }
  }
}

// Calls lend(waiter, owner), which says whether it changed anything, for each waiter with work until nothing
// changes any more. That the waiter is stalled does not matter: waiting makes it so.
template <typename Lend>
void Waits::AlongWaits(Lend&& lend) const {
  bool changed = any_;
  for (int length = 0; changed && length < kLongestChain; ++length) {
    changed = false;
    for (const DeviceRecord* device : devices_) {
      for (const QueueRecord* waiter : device->queues) {
        if (waiter->state == QueueState::kIdle || waiter->absent) continue;
        for (int i = 0; i < waiter->wait_count; ++i) changed |= lend(*waiter, *waiter->waits[i].owner);
      }
    }
  }
}

void Waits::LendPriorities() const {
  AlongWaits([](const QueueRecord& waiter, QueueRecord& owner) {
    if (owner.priority >= waiter.priority) return false;
    owner.priority = waiter.priority;
    return true;
  });
}

// Holding a queue must never hold what a running one needs, whatever the policy says.
void Waits::LendRuns() const {
  AlongWaits([](const QueueRecord& waiter, QueueRecord& owner) {
    if (!waiter.run || owner.run) return false;
    owner.run = true;
    return true;
  });
}

}  // namespace xsched::sched
