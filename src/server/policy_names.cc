#include "server/policy_names.h"

#include <fmt/format.h>

#include <stdexcept>

namespace xsched::server {
namespace {

using sched::HintsRead;

// As the options that set them are called.
constexpr struct {
  bool HintsRead::*read;
  const char* name;
} kHints[] = {
    {&HintsRead::priority, "priority"},   {&HintsRead::utilization, "utilization"},
    {&HintsRead::deadline, "deadline"},   {&HintsRead::laxity, "laxity"},
    {&HintsRead::timeslice, "timeslice"},
};

}  // namespace

std::vector<std::string> PolicyNames(bool HintsRead::*hint) {
  std::vector<std::string> names;
  for (sched::PolicyGetter policy : sched::Policies()) {
    const sched::PolicyInfo& info = policy().info();
    if (hint == nullptr || info.hints.*hint) names.emplace_back(info.name);
  }
  return names;
}

std::string Listed(const std::vector<std::string>& words, std::string_view conjunction) {
  if (words.empty()) return "";
  std::string text = words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    text += i + 1 < words.size() ? ", " : fmt::format(" {} ", conjunction);
    text += words[i];
  }
  return text;
}

std::string NamesOfHints(const sched::PolicyInfo& info) {
  std::string names;
  for (const auto& hint : kHints) {
    if (info.hints.*hint.read) names += fmt::format("{}{}", names.empty() ? "" : ", ", hint.name);
  }
  return names.empty() ? "none" : names;
}

std::string ReadBy(bool HintsRead::*hint) {
  const std::vector<std::string> names = PolicyNames(hint);
  if (names.empty()) return "no policy of this build reads it";
  return fmt::format("{} {}", names.size() == 1 ? "policy" : "policies", Listed(names, "and"));
}

std::string NoSuchPolicy(const std::string& name) {
  return fmt::format("there is no policy {} (there are {})", name, Listed(PolicyNames(), "and"));
}

const sched::Policy& PolicyOrThrow(const std::string& name) {
  const sched::Policy* policy = sched::FindPolicyByName(name.c_str());
  if (policy == nullptr) throw std::runtime_error(NoSuchPolicy(name));
  return *policy;
}

}  // namespace xsched::server
