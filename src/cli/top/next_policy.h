// The policy that the key p sets.
#pragma once

#include <string>

#include "sched/core/policy.h"

namespace xsched::cli {

// The one after this setting, the first after the last. nullptr: the setting is more than a policy, a chain
// or one with what it decides about. One key must not replace it: pressing the key again would not bring it
// back.
inline const sched::Policy* NextPolicy(const std::string& setting) {
  const auto policies = sched::Policies();
  for (size_t i = 0; i < policies.size(); ++i) {
    if (policies[i]().info().name == setting) return &policies[(i + 1) % policies.size()]();
  }
  return nullptr;
}

}  // namespace xsched::cli
