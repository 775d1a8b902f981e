// The policies of this build, as options, messages and manuals name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/core/policy_setting.h"

namespace xsched::server {

// All policies in the order of Policies(), or only those that read `hint`.
std::vector<std::string> PolicyNames(bool sched::HintsRead::*hint = nullptr);
// "HPF", "HPF or UP", "CFS, HPF or UP".
std::string Listed(const std::vector<std::string>& words, std::string_view conjunction);
// The hints that the policy reads: "priority", "utilization, timeslice", "none".
std::string NamesOfHints(const sched::PolicyInfo& info);
// For the help of an option that sets a hint: "policy UP", "policies CFS and UP", "no policy of this build
// reads it".
std::string ReadBy(bool sched::HintsRead::*hint);

// "HPF/CFS:process": the form in which users write settings.
std::string TextOf(const sched::PolicySetting& setting);
// From that form. Throws std::runtime_error: which policies there are, if one is unknown, or what else is
// wrong.
sched::PolicySetting SettingOrThrow(const std::string& text);
// The help of an option that says what a policy decides about, and what it does: `setting`, which must be a
// single policy, by "queue" or "process". Throws std::runtime_error.
inline constexpr const char* kByHelp =
    "what the policy decides about: queue, process or tenant (default: the policy's own)";
sched::PolicySetting SettingBy(const sched::PolicySetting& setting, const std::string& by);

}  // namespace xsched::server
