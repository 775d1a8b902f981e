#include "server/tenants/priority_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/queues.h"
#include "server/tenants/tenant.h"

namespace xsched::server {
namespace {

// The highest priority that the queue may come to have by its hints.
Priority ClaimOf(const Queue& queue) {
  const sched::Hints& hints = queue.hints;
  if (hints.laxity_us == NO_LAXITY) return hints.priority;
  return std::max({hints.priority, hints.lax_priority, hints.critical_priority});
}

bool IsFree(const Queue& queue) {
  return queue.agent->tenant == nullptr || queue.agent->claims_anything || queue.granted;
}

Priority Lowered(Priority priority, Priority by) {
  return priority <= PRIORITY_MIN ? priority : std::max(PRIORITY_MIN, priority - by);
}

}  // namespace

void PriorityClaims::Add(const Queue& queue) {
  if (queue.agent->tenant == nullptr) return;
  ++queue.agent->tenant->queues;
  if (IsFree(queue)) return;
  ++queue.agent->tenant->claims[ClaimOf(queue)];
  Reconsider(*queue.agent->tenant);
}

void PriorityClaims::Remove(const Queue& queue) {
  if (queue.agent->tenant == nullptr) return;
  --queue.agent->tenant->queues;
  if (IsFree(queue)) return;
  auto& claims = queue.agent->tenant->claims;
  const auto claim = claims.find(ClaimOf(queue));
  if (--claim->second == 0) claims.erase(claim);
  Reconsider(*queue.agent->tenant);
}

void PriorityClaims::Reconsider(Tenant& tenant) {
  const Priority highest = tenant.claims.empty() ? PRIORITY_MIN : tenant.claims.rbegin()->first;
  const Priority lowered_by = std::max(0, highest - tenant.rights.max_priority);
  if (lowered_by == tenant.lowered_by) return;
  tenant.lowered_by = lowered_by;
  if (std::find(changed_.begin(), changed_.end(), &tenant) == changed_.end()) changed_.push_back(&tenant);
}

void PriorityClaims::Apply(const Queue& queue) const { scheduler_.SetHints(queue.id, CountedHints(queue)); }

void PriorityClaims::ApplyChanged(const Queues& queues) {
  if (changed_.empty()) return;
  queues.ForEach([this](const Queue& queue) {
    if (std::find(changed_.begin(), changed_.end(), queue.agent->tenant) != changed_.end()) Apply(queue);
  });
  changed_.clear();
}

sched::Hints CountedHints(const Queue& queue) {
  sched::Hints hints = queue.hints;
  if (IsFree(queue)) return hints;
  const Priority by = queue.agent->tenant->lowered_by;
  for (Priority* priority : {&hints.priority, &hints.lax_priority, &hints.critical_priority})
    *priority = Lowered(*priority, by);
  return hints;
}

std::string CorrectionOf(const Queue& queue) {
  if (IsFree(queue)) return "";
  const Tenant& tenant = *queue.agent->tenant;
  if (ClaimOf(queue) <= tenant.rights.max_priority) return "";
  return fmt::format(
      "priority {} counts as {}: {} is the highest that tenant {} may claim. All queues of the tenant count "
      "{} less",
      ClaimOf(queue), Lowered(ClaimOf(queue), tenant.lowered_by), tenant.rights.max_priority, tenant.name,
      tenant.lowered_by);
}

}  // namespace xsched::server
