#include "sched/sim/counted_hints.h"

namespace xsched::sched::sim {

void CountedHints::Begin(size_t queue, const Hints& hints) {
  hints_[queue] = hints;
  if (IsLimited(queue)) tenants_[TenantOf(queue)].Add(HighestPriorityOf(hints));
}

void CountedHints::End(size_t queue) {
  if (IsLimited(queue)) tenants_[TenantOf(queue)].Remove(HighestPriorityOf(hints_[queue]));
}

void CountedHints::Change(size_t queue, const Hints& hints) {
  End(queue);
  Begin(queue, hints);
}

Hints CountedHints::Of(size_t queue) const {
  if (!IsLimited(queue)) return hints_[queue];
  const uint64_t tenant = TenantOf(queue);
  return Lowered(hints_[queue], tenants_.at(tenant).LoweredBy(load_.max_priorities.at(tenant)));
}

}  // namespace xsched::sched::sim
