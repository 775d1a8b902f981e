// What the hints of a load's queues count, where its tenants may not claim every priority
// (sched/core/claimed_priorities.h), as on a server.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "sched/core/claimed_priorities.h"
#include "sched/sim/load.h"

namespace xsched::sched::sim {

class CountedHints {
 public:
  explicit CountedHints(const Load& load) : load_(load), hints_(load.queues.size()) {}

  // The queue comes with these hints, has these from now on, or is gone.
  void Begin(size_t queue, const Hints& hints);
  void Change(size_t queue, const Hints& hints);
  void End(size_t queue);

  Hints Of(size_t queue) const;
  // The queue's tenant may not claim every priority.
  bool IsLimited(size_t queue) const { return load_.max_priorities.contains(TenantOf(queue)); }
  // True if the hints of one may change what those of the other count.
  bool AreTogether(size_t queue, size_t other) const {
    return queue == other || (IsLimited(queue) && TenantOf(queue) == TenantOf(other));
  }

 private:
  uint64_t TenantOf(size_t queue) const {
    return load_.processes[static_cast<size_t>(load_.queues[queue].process)].tenant;
  }

  const Load& load_;
  std::vector<Hints> hints_;
  std::map<uint64_t, ClaimedPriorities> tenants_;
};

}  // namespace xsched::sched::sim
