// The policies of this build, as options, messages and manuals name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/core/policy.h"

namespace xsched::server {

// In the order of Policies(); with `hint`, those that read it.
std::vector<std::string> PolicyNames(bool sched::HintsRead::*hint = nullptr);
// "HPF", "HPF or UP", "CFS, HPF or UP".
std::string Listed(const std::vector<std::string>& words, std::string_view conjunction);
// The hints that the policy reads: "priority", "utilization, timeslice", "none".
std::string NamesOfHints(const sched::PolicyInfo& info);
// For the help of an option that sets a hint: "policy UP", "policies CFS and UP", "no policy of this build
// reads it".
std::string ReadBy(bool sched::HintsRead::*hint);

// Why there is no policy `name`, with those that there are.
std::string NoSuchPolicy(const std::string& name);
// Throws std::runtime_error: there is no such policy.
const sched::Policy& PolicyOrThrow(const std::string& name);

}  // namespace xsched::server
