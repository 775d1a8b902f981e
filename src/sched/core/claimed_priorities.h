// How much the priorities count that queues of one tenant claim, where the tenant may not claim any.
//
// No queue counts for more than the tenant may claim. If one claims more, all queues of the tenant count for
// less by the same amount. So these queues keep their order, and a claim that is not allowed holds no other
// tenant. This works like nice: to give one program precedence, a user lowers the priority of the others.
//
//   may claim 0      claimed 10  0  -5       counts as 0  -10  -15
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>

#include "sched/core/types.h"

namespace xsched::sched {

// The highest priority that a queue may come to have by its hints.
inline Priority HighestPriorityOf(const Hints& hints) {
  if (hints.laxity_us == NO_LAXITY) return hints.priority;
  return std::max({hints.priority, hints.lax_priority, hints.critical_priority});
}

inline Priority Lowered(Priority priority, Priority by) {
  return priority <= PRIORITY_MIN ? priority : std::max(PRIORITY_MIN, priority - by);
}

inline Hints Lowered(Hints hints, Priority by) {
  for (Priority* priority : {&hints.priority, &hints.lax_priority, &hints.critical_priority})
    *priority = Lowered(*priority, by);
  return hints;
}

class ClaimedPriorities {
 public:
  // A queue claims this.
  void Add(Priority priority) { ++queues_[priority]; }
  // REQUIRES: it was added.
  void Remove(Priority priority) {
    const auto claimed = queues_.find(priority);
    if (--claimed->second == 0) queues_.erase(claimed);
  }
  // How much less each of the queues counts if the tenant may claim so much.
  Priority LoweredBy(Priority highest_allowed) const {
    return queues_.empty() ? 0 : std::max(0, queues_.rbegin()->first - highest_allowed);
  }

 private:
  std::map<Priority, size_t> queues_;  // how many claim each priority
};

}  // namespace xsched::sched
