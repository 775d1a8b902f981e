// A tenant: the processes that have one share of the devices together, with its rights, and what has been
// counted of it. Data only: tenant_table.h makes tenants, and priority_claims.h applies their rights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sched/core/claimed_priorities.h"
#include "sched/core/scheduler.h"
#include "server/limits.h"
#include "server/tenants/tenant_memory.h"
#include "server/usage.h"

namespace xsched::server {

// What a user may do of whom no file says anything else: lower priorities, and not raise them.
inline constexpr Priority kDefaultMaxPriority = PRIORITY_DEFAULT;

// A user whom no file names is a tenant of this name, with the user's number.
inline constexpr const char* kUserTenantPrefix = "uid:";
// Stands for all further users, if there are too many.
inline constexpr const char* kFurtherUsersTenant = "others";
inline constexpr size_t kMaxTenantName = 63;

struct TenantRights {
  sched::TenantShare share;
  Priority max_priority = kDefaultMaxPriority;  // the highest that its queues may claim
  size_t max_queues = kMaxQueuesOfUser;
  uint64_t memory = 0;  // bytes that its processes may have together of each device; 0: no limit

  bool operator==(const TenantRights&) const = default;
};

struct Tenant {
  sched::TenantId id{};
  std::string name;
  TenantRights rights;
  // Nonempty: it ends with its last process. It was made for one job or the like, by the rule of this name.
  std::string made_by;
  bool is_former = false;  // no rule names it any more: it ends with its last process, too

  size_t processes = 0;
  size_t queues = 0;
  sched::ClaimedPriorities claims;  // by those of its queues that count (priority_claims.h)
  Priority lowered_by = 0;          // so much less does each of these count

  Usage used;            // over all devices
  uint64_t refused = 0;  // requests that were denied or corrected

  std::weak_ptr<TenantMemory> memory;  // as long as a process has a slot in it
};

}  // namespace xsched::server
