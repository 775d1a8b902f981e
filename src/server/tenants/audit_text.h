// Requests and settings in the words of the audit log.
#pragma once

#include <cstdint>
#include <string>

#include "ipc/messages.h"
#include "sched/core/scheduler.h"

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

}  // namespace xsched::server
