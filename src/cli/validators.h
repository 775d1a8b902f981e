// What the command line checks before a command begins, with messages for people.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "sched/core/policy.h"
#include "server/policy_names.h"

namespace xsched::cli {

// kPolicyUnknown: no such policy.
inline XPolicyType PolicyByName(const std::string& name) {
  const sched::Policy* policy = sched::FindPolicyByName(name.c_str());
  return policy == nullptr ? kPolicyUnknown : policy->type();
}

inline CLI::Validator PolicyValidator() {
  return CLI::Validator(
      [](std::string& name) {
        return PolicyByName(name) == kPolicyUnknown ? server::NoSuchPolicy(name) : "";
      },
      fmt::format("{}", fmt::join(server::PolicyNames(), "|")));
}

inline CLI::Validator AboveZero() {
  return CLI::Validator(
      [](std::string& text) {
        int64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool valid = error == std::errc() && end == text.data() + text.size() && value > 0;
        return valid ? "" : text + " is not a whole number above 0";
      },
      "above 0");
}

}  // namespace xsched::cli
