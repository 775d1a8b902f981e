#include "server/policy_names.h"

#include <fmt/format.h>

#include <stdexcept>

namespace xsched::server {
namespace {

using sched::HintsRead;

// The hints, by the names of the options that set them.
constexpr struct {
  bool HintsRead::*read;
  const char* name;
} kHints[] = {
    {&HintsRead::priority, "priority"},
    {&HintsRead::utilization, "utilization"},
    {&HintsRead::deadline, "deadline"},
    {&HintsRead::laxity, "laxity"},
    {&HintsRead::weight, "weight"},
    {&HintsRead::reservation, "reservation"},
    {&HintsRead::latency_target, "latency target"},
    {&HintsRead::floor, "floor"},
    {&HintsRead::timeslice, "timeslice"},
    {&HintsRead::at_a_time, "k"},
    {&HintsRead::cpu_priority, "nice value"},
    {&HintsRead::window_active, "active window"},
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

std::string TextOf(const sched::PolicySetting& setting) {
  char text[sched::kPolicyTextSize];
  sched::WritePolicySetting(setting, text);
  return text;
}

sched::PolicySetting SettingOrThrow(const std::string& text) {
  Result<sched::PolicySetting> setting = sched::ParsePolicySetting(text.c_str());
  if (setting) return *setting;
  throw std::runtime_error(
      fmt::format("{} (there are {})", setting.error().text(), Listed(PolicyNames(), "and")));
}

sched::PolicySetting SettingBy(const sched::PolicySetting& setting, const std::string& by) {
  if (setting.layers().size() > 1)
    throw std::runtime_error(
        "--by is for one policy; in a chain, write NAME:queue, NAME:process or NAME:tenant");
  return SettingOrThrow(fmt::format("{}:{}", setting.first().info().name, by));
}

}  // namespace xsched::server
