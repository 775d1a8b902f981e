// Policies by the names that people type.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sched/core/policy.h"

namespace xsched::cli {

// kPolicyUnknown: no such policy.
inline XPolicyType PolicyByName(const std::string& name) {
  const sched::Policy* policy = sched::FindPolicyByName(name.c_str());
  return policy == nullptr ? kPolicyUnknown : policy->type();
}

inline CLI::Validator PolicyValidator() {
  return CLI::Validator(
      [](std::string& name) {
        return PolicyByName(name) == kPolicyUnknown ? "there is no policy " + name + " (there are HPF and UP)"
                                                    : "";
      },
      "HPF|UP");
}

}  // namespace xsched::cli
