#include "sched/core/rivals.h"

#include <algorithm>

#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// Which hints a process's queues have is kept in one word: with more distinct hints, each process that has
// several queues is taken to hold its own.
constexpr size_t kMostHints = 64;

}  // namespace

// Who may be held by whom depends on hints alone, and few of them differ: ask once per distinct pair.
void RefreshRivals(const Policy& policy, DeviceRecord& device) {
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
  uint64_t held_by[kMostHints] = {};
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = 0; j < groups.size(); ++j) {
      if (i == j && groups[i].count == 1) continue;
      if (!policy.CanHold(groups[i].hints, groups[j].hints)) continue;
      groups[i].can_be_held = groups[j].can_hold = true;
      if (i < kMostHints && j < kMostHints) held_by[i] |= uint64_t{1} << j;
    }
  }
  const bool few = groups.size() <= kMostHints;
  for (ProcessRecord* process : device.slices.processes()) process->hints_held = process->hints_twice = 0;
  for (QueueRecord* queue : device.queues) {
    const Group& group = groups[queue->hints_number];
    queue->can_hold = group.can_hold;
    queue->can_be_held = group.can_be_held;
    if (!few) continue;
    const uint64_t bit = uint64_t{1} << queue->hints_number;
    queue->process->hints_twice |= queue->process->hints_held & bit;
    queue->process->hints_held |= bit;
  }
  for (QueueRecord* queue : device.queues) {
    if (!few) {
      queue->held_by_own = queue->process->queues > 1;
      continue;
    }
    const uint64_t bit = uint64_t{1} << queue->hints_number;
    const uint64_t others = (queue->process->hints_held & ~bit) | queue->process->hints_twice;
    queue->held_by_own = (held_by[queue->hints_number] & others) != 0;
  }
}

}  // namespace xsched::sched
