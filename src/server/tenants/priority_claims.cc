#include "server/tenants/priority_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/queues.h"
#include "server/tenants/tenant.h"

namespace xsched::server {
namespace {

// A queue on a device that its process cannot use takes nothing from the others of its tenant.
bool Counts(const Queue& queue) { return queue.agent->tenant != nullptr && queue.has_access; }

bool IsFree(const Queue& queue) { return queue.agent->tenant == nullptr || queue.agent->claims_anything; }

// The highest priority that the queue claims for itself; the lowest one, which lowers nothing: none.
Priority ClaimedBy(const Queue& queue) {
  sched::Hints claimed = queue.hints;
  if (queue.granted.priority) claimed.priority = PRIORITY_MIN;
  if (queue.granted.lax_priority) claimed.lax_priority = PRIORITY_MIN;
  if (queue.granted.critical_priority) claimed.critical_priority = PRIORITY_MIN;
  return sched::HighestPriorityOf(claimed);
}

}  // namespace

void PriorityClaims::Add(const Queue& queue) {
  if (!Counts(queue)) return;
  ++queue.agent->tenant->queues;
  if (IsFree(queue)) return;
  queue.agent->tenant->claims.Add(ClaimedBy(queue));
  Reconsider(*queue.agent->tenant, queue.agent->connection.peer.uid);
}

void PriorityClaims::Remove(const Queue& queue) {
  if (!Counts(queue)) return;
  --queue.agent->tenant->queues;
  if (IsFree(queue)) return;
  queue.agent->tenant->claims.Remove(ClaimedBy(queue));
  Reconsider(*queue.agent->tenant, queue.agent->connection.peer.uid);
}

void PriorityClaims::Reconsider(Tenant& tenant, std::optional<uid_t> user) {
  const Priority lowered_by = tenant.claims.LoweredBy(tenant.rights.max_priority);
  if (lowered_by == tenant.lowered_by) return;
  tenant.lowered_by = lowered_by;
  if (!HasChanged(&tenant)) changed_.push_back({&tenant, user});
}

bool PriorityClaims::HasChanged(const Tenant* tenant) const {
  return std::any_of(changed_.begin(), changed_.end(),
                     [tenant](const Change& change) { return change.tenant == tenant; });
}

void PriorityClaims::Forget(const Tenant& tenant) {
  std::erase_if(changed_, [&](const Change& change) { return change.tenant == &tenant; });
}

void PriorityClaims::Apply(const Queue& queue) const { scheduler_.SetHints(queue.id, CountedHints(queue)); }

void PriorityClaims::ApplyChanged(const Queues& queues, WorkBudget& work) {
  if (changed_.empty()) return;
  for (const Change& change : changed_) {
    scheduler_.ExpectHints(change.tenant->id);
    if (change.user) work.Charge(*change.user, queues.size() / WorkBudget::kLookedAtAsOne);
  }
  queues.ForEach([this](const Queue& queue) {
    if (HasChanged(queue.agent->tenant)) Apply(queue);
  });
  changed_.clear();
}

sched::Hints CountedHints(const Queue& queue) {
  if (IsFree(queue)) return queue.hints;
  sched::Hints counted = sched::Lowered(queue.hints, queue.agent->tenant->lowered_by);
  if (queue.granted.priority) counted.priority = queue.hints.priority;
  if (queue.granted.lax_priority) counted.lax_priority = queue.hints.lax_priority;
  if (queue.granted.critical_priority) counted.critical_priority = queue.hints.critical_priority;
  return counted;
}

std::string CorrectionOf(const Queue& queue) {
  if (!Counts(queue) || IsFree(queue)) return "";
  const Tenant& tenant = *queue.agent->tenant;
  const Priority claimed = ClaimedBy(queue);
  if (claimed <= tenant.rights.max_priority) return "";
  return fmt::format(
      "priority {} counts as {}: {} is the highest that tenant {} may claim. All queues of the tenant count "
      "{} less",
      claimed, sched::Lowered(claimed, tenant.lowered_by), tenant.rights.max_priority, tenant.name,
      tenant.lowered_by);
}

}  // namespace xsched::server
