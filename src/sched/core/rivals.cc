#include "sched/core/rivals.h"

#include <algorithm>
#include <utility>

#include "sched/core/active_queues.h"
#include "sched/core/former_rivals.h"
#include "sched/core/queue_record.h"
#include "sched/core/views.h"

namespace xsched::sched {
namespace {

// One word says which hints the queues of a process have. If there are more distinct hints than this, each
// queue is assumed to hold others and to be held: to ask about each pair would take time in proportion to the
// square of what one user may register.
constexpr size_t kMostHints = 64;

// Queues with the same hints, and former rivals, each as one queue.
struct Group {
  ShownHints hints;
  size_t queues;
  size_t processes;  // or more
  bool any_to_hold;  // not only former rivals
  bool can_hold;
  bool can_be_held;
};

struct Holds {
  bool own_process = false;
  bool other_process = false;
};

Holds CanHold(const PolicySetting& setting, bool by_group, const Group& victim, const Group& rival) {
  const bool same_hints = &victim == &rival;
  if (same_hints && victim.queues == 1) return {};
  if (!by_group) {
    const bool holds = setting.CanHold(victim.hints, rival.hints);
    return {holds, holds};
  }
  const bool same_process =
      victim.hints.of_process == rival.hints.of_process && victim.hints.of_tenant == rival.hints.of_tenant;
  const bool other_process = !same_hints || victim.processes > 1;
  return {same_process && setting.CanHold(victim.hints, rival.hints, /*same_process=*/true),
          other_process && setting.CanHold(victim.hints, rival.hints)};
}

uint64_t HashOf(const Hints& hints) {
  const int64_t words[] = {hints.priority,         hints.utilization,  hints.deadline_us,
                           hints.laxity_us,        hints.lax_priority, hints.critical_priority,
                           hints.weight,           hints.floor,        hints.guarantee_us,
                           hints.period_us,        hints.limit_us,     hints.burst_us,
                           hints.latency_target_us};
  uint64_t hash = 0;
  for (const int64_t word : words) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

// The groups of queues with the same hints, as far as the policies decide by them: a table of twice their
// number, so that each queue finds its group at once.
class Groups {
 public:
  explicit Groups(const PolicySetting& setting)
      : by_queue_(setting.DecidesAbout(Granularity::kQueue)),
        by_process_(setting.DecidesAbout(Granularity::kProcess)),
        by_tenant_(setting.DecidesAbout(Granularity::kTenant)) {}

  // Null: there are too many, or no memory.
  Group* Get(const Hints& own, const Hints& of_process, const Hints& of_tenant) {
    uint64_t slot = 0;
    if (by_queue_) slot += HashOf(own);
    if (by_process_) slot += 31 * HashOf(of_process);
    if (by_tenant_) slot += 37 * HashOf(of_tenant);
    for (;; ++slot) {
      size_t& number = numbers_[slot % kSlots];
      if (number == 0) {
        const ShownHints hints{by_queue_ ? own : Hints{}, by_process_ ? of_process : Hints{},
                               by_tenant_ ? of_tenant : Hints{}};
        if (all_.size() == kMostHints || !all_.Push(Group{hints, 0, 0, false, false, false})) return nullptr;
        number = all_.size();
      }
      const ShownHints& hints = all_[number - 1].hints;
      if ((!by_queue_ || hints.own == own) && (!by_process_ || hints.of_process == of_process) &&
          (!by_tenant_ || hints.of_tenant == of_tenant))
        return &all_[number - 1];
    }
  }
  Array<Group>& all() { return all_; }

 private:
  static constexpr size_t kSlots = 2 * kMostHints;

  const bool by_queue_;
  const bool by_process_;
  const bool by_tenant_;
  size_t numbers_[kSlots] = {};  // of groups, from 1; 0: none
  Array<Group> all_;
};

// False: there are more distinct hints than kMostHints, or there is no memory.
bool MakeGroups(const PolicySetting& setting, std::span<DeviceRecord* const> devices,
                const FormerRivals& former, Groups& groups) {
  for (DeviceRecord* device : devices) {
    for (ProcessRecord* process : device->slices.processes()) process->counted_in = 0;
    for (QueueRecord* queue : device->queues) {
      Group* group = groups.Get(queue->hints, queue->process->hints, queue->process->tenant->hints);
      if (group == nullptr) return false;
      queue->hints_number = static_cast<size_t>(group - groups.all().begin());
      ++group->queues;
      group->any_to_hold = true;
      const size_t number = queue->hints_number + 1;
      group->processes += std::exchange(queue->process->counted_in, number) != number;
    }
  }
  for (const FormerRivals::Rival& rival : former.all()) {
    if (!setting.ComparesAllDevices() && rival.device != devices.front()->id) continue;
    Group* group = groups.Get(rival.hints, rival.hints, rival.hints);
    if (group == nullptr) return false;
    ++group->queues;
    ++group->processes;
  }
  return true;
}

// An idle queue must be told what has changed for it. Other hints of one queue mostly change nothing for the
// others.
class Changes {
 public:
  void Set(QueueRecord& queue, const Rivalry& rivalry) {
    if (queue.rivalry == rivalry) return;
    queue.rivalry = rivalry;
    if (++changed_ <= kOneByOne) return Activate(queue);
    ActivateAll(*queue.device);  // one by one would take longer
  }

 private:
  static constexpr size_t kOneByOne = 128;
  size_t changed_ = 0;
};

// Costs gates where there need be none, and nothing else.
void AssumeRivals(const PolicySetting& setting, std::span<DeviceRecord* const> devices) {
  const bool by_queue = setting.DecidesAbout(Granularity::kQueue);
  Changes changes;
  for (DeviceRecord* device : devices) {
    for (QueueRecord* queue : device->queues) {
      // No time slice serves a queue of another device.
      const bool own = setting.ComparesAllDevices() || (by_queue && queue->process->queues > 1);
      changes.Set(*queue, {.can_hold = true, .can_be_held = true, .holds_own = own, .held_by_own = own});
    }
  }
}

}  // namespace

// Whether one queue may hold another depends on their hints alone, and there are few distinct hints. So the
// policies are asked once per distinct pair.
void RefreshRivals(const PolicySetting& setting, std::span<DeviceRecord* const> devices,
                   const FormerRivals& former) {
  const bool by_group =
      setting.DecidesAbout(Granularity::kProcess) || setting.DecidesAbout(Granularity::kTenant);
  for (DeviceRecord* device : devices) {
    device->rivals_changed = false;
    if (setting.ShowsProcesses()) RefreshHintsOfGroups(*device, setting.DecidesAbout(Granularity::kTenant));
  }
  Groups made(setting);
  if (!MakeGroups(setting, devices, former, made)) return AssumeRivals(setting, devices);
  Array<Group>& groups = made.all();
  // held_by[i] has a bit for each of the hints that can hold hints number i in the same process;
  // holds_these[i] for each that they can hold.
  uint64_t held_by[kMostHints] = {};
  uint64_t holds_these[kMostHints] = {};
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].any_to_hold) continue;
    groups[i].can_be_held |= setting.CanLimit(groups[i].hints);
    for (size_t j = 0; j < groups.size(); ++j) {
      const Holds holds = CanHold(setting, by_group, groups[i], groups[j]);
      if (!holds.own_process && !holds.other_process) continue;
      groups[i].can_be_held = groups[j].can_hold = true;
      if (!holds.own_process) continue;
      held_by[i] |= uint64_t{1} << j;
      holds_these[j] |= uint64_t{1} << i;
    }
  }
  const bool all_devices = setting.ComparesAllDevices();
  Changes changes;
  for (DeviceRecord* device : devices) {
    for (ProcessRecord* process : device->slices.processes()) process->hints_held = process->hints_twice = 0;
    for (QueueRecord* queue : device->queues) {
      const uint64_t bit = uint64_t{1} << queue->hints_number;
      queue->process->hints_twice |= queue->process->hints_held & bit;
      queue->process->hints_held |= bit;
    }
    for (QueueRecord* queue : device->queues) {
      const Group& group = groups[queue->hints_number];
      const uint64_t bit = uint64_t{1} << queue->hints_number;
      const uint64_t others = (queue->process->hints_held & ~bit) | queue->process->hints_twice;
      Rivalry rivalry{.can_hold = group.can_hold, .can_be_held = group.can_be_held};
      // No time slice serves a queue of another device.
      rivalry.holds_own = all_devices ? group.can_hold : (holds_these[queue->hints_number] & others) != 0;
      rivalry.held_by_own = all_devices ? group.can_be_held : (held_by[queue->hints_number] & others) != 0;
      changes.Set(*queue, rivalry);
    }
  }
}

}  // namespace xsched::sched
