#include "sched/core/rivals.h"

#include <algorithm>
#include <utility>

#include "sched/core/active_queues.h"
#include "sched/core/queue_record.h"
#include "sched/core/views.h"

namespace xsched::sched {
namespace {

// One word says which hints the queues of a process have. If there are more distinct hints than this, each
// process with several queues is assumed to hold its own queues.
constexpr size_t kMostHints = 64;

// Queues with the same hints.
struct Group {
  ShownHints hints;
  size_t queues;
  size_t processes;  // or more
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

// False: out of memory.
bool MakeGroups(const PolicySetting& setting, std::span<DeviceRecord* const> devices, Array<Group>& groups) {
  const bool by_queue = setting.DecidesAbout(Granularity::kQueue);
  const bool by_process = setting.DecidesAbout(Granularity::kProcess);
  const bool by_tenant = setting.DecidesAbout(Granularity::kTenant);
  for (DeviceRecord* device : devices) {
    for (ProcessRecord* process : device->slices.processes()) process->counted_in = 0;
    for (QueueRecord* queue : device->queues) {
      const ShownHints hints = {by_queue ? queue->hints : Hints{},
                                by_process ? queue->process->hints : Hints{},
                                by_tenant ? queue->process->tenant->hints : Hints{}};
      Group* group = std::find_if(groups.begin(), groups.end(),
                                  [&](const Group& other) { return other.hints == hints; });
      queue->hints_number = static_cast<size_t>(group - groups.begin());
      if (group == groups.end()) {
        if (!groups.Push(Group{hints, 0, 0, false, false})) return false;
        group = &groups.back();
      }
      ++group->queues;
      const size_t number = queue->hints_number + 1;
      group->processes += std::exchange(queue->process->counted_in, number) != number;
    }
  }
  return true;
}

}  // namespace

// Whether one queue may hold another depends on their hints alone, and there are few distinct hints. So the
// policies are asked once per distinct pair.
void RefreshRivals(const PolicySetting& setting, std::span<DeviceRecord* const> devices) {
  const bool by_group =
      setting.DecidesAbout(Granularity::kProcess) || setting.DecidesAbout(Granularity::kTenant);
  for (DeviceRecord* device : devices) {
    device->rivals_changed = false;
    ActivateAll(*device);
    if (setting.ShowsProcesses()) RefreshHintsOfGroups(*device, setting.DecidesAbout(Granularity::kTenant));
  }
  Array<Group> groups;
  if (!MakeGroups(setting, devices, groups)) return;  // out of memory: the old values are good enough
  // held_by[i] has a bit for each of the hints that can hold hints number i in the same process;
  // holds_these[i] for each that they can hold.
  uint64_t held_by[kMostHints] = {};
  uint64_t holds_these[kMostHints] = {};
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = 0; j < groups.size(); ++j) {
      const Holds holds = CanHold(setting, by_group, groups[i], groups[j]);
      if (!holds.own_process && !holds.other_process) continue;
      groups[i].can_be_held = groups[j].can_hold = true;
      if (!holds.own_process || i >= kMostHints || j >= kMostHints) continue;
      held_by[i] |= uint64_t{1} << j;
      holds_these[j] |= uint64_t{1} << i;
    }
  }
  const bool few = groups.size() <= kMostHints;
  const bool by_queue = setting.DecidesAbout(Granularity::kQueue);
  const bool all_devices = setting.ComparesAllDevices();
  for (DeviceRecord* device : devices) {
    for (ProcessRecord* process : device->slices.processes()) process->hints_held = process->hints_twice = 0;
    for (QueueRecord* queue : device->queues) {
      const Group& group = groups[queue->hints_number];
      queue->can_hold = group.can_hold;
      queue->can_be_held = group.can_be_held;
      if (!few) continue;
      const uint64_t bit = uint64_t{1} << queue->hints_number;
      queue->process->hints_twice |= queue->process->hints_held & bit;
      queue->process->hints_held |= bit;
    }
    for (QueueRecord* queue : device->queues) {
      if (all_devices || !few) {
        // No time slice serves a queue of another device.
        const bool own = all_devices || (by_queue && queue->process->queues > 1);
        queue->held_by_own = queue->can_be_held && own;
        queue->holds_own = queue->can_hold && own;
        continue;
      }
      const uint64_t bit = uint64_t{1} << queue->hints_number;
      const uint64_t others = (queue->process->hints_held & ~bit) | queue->process->hints_twice;
      queue->held_by_own = (held_by[queue->hints_number] & others) != 0;
      queue->holds_own = (holds_these[queue->hints_number] & others) != 0;
    }
  }
}

}  // namespace xsched::sched
