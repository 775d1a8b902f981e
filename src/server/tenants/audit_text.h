// Requests and settings in the words of the audit log.
#pragma once

#include <cstdint>
#include <string>

#include "ipc/messages.h"
#include "sched/core/scheduler.h"
#include "server/tenants/tenants_file.h"

namespace xsched::server {

// Which queues a request of a tool is about: "queue 3", "pid 7".
std::string TargetOf(const ipc::SetHints& request);
std::string TargetOf(const ipc::SetConfig& request);

// Those of the hints that the mask (kHint…) names.
std::string TextOf(uint32_t mask, const sched::Hints& hints);
std::string TextOf(const ipc::SetConfig& request);
std::string TextOf(const ipc::SetPolicy& request);
// The policy with what belongs to it.
std::string TextOf(const sched::Scheduler& scheduler);
// How many entries a tenants' file has.
std::string TextOf(const TenantRules& rules);
// "added a, b; removed c; changed d, [default]". Of many names, only the first ones.
std::string ChangesIn(const TenantRules& from, const TenantRules& to);

}  // namespace xsched::server
