#include "server/tenants/audit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "server/clean_text.h"
#include "server/connection.h"
#include "server/policy_names.h"

namespace xsched::server {
namespace {

std::string Target(uint64_t queue, int32_t pid) {
  return queue != 0 ? fmt::format("queue {}", queue) : fmt::format("pid {}", pid);
}

const TenantRule* RuleNamed(const TenantRules& rules, const std::string& name) {
  const auto found = std::find_if(rules.tenants.begin(), rules.tenants.end(),
                                  [&](const TenantRule& rule) { return rule.name == name; });
  return found == rules.tenants.end() ? nullptr : &*found;
}

// The names of those entries that the other rules have as well (`shared`), or do not have, in their order.
std::vector<std::string> NamesIn(const TenantRules& rules, const TenantRules& others, bool shared) {
  std::vector<std::string> names;
  for (const TenantRule& rule : rules.tenants) {
    if ((RuleNamed(others, rule.name) != nullptr) == shared) names.push_back(rule.name);
  }
  return names;
}

// "changed a, b": bounded in length, because a file may have any number of entries.
void AddNames(std::string& text, const char* what, const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 8;
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kMostNames);
  text += fmt::format("{}{} {}", text.empty() ? "" : "; ", what,
                      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
}

}  // namespace

std::string TargetOf(const ipc::SetHints& request) { return Target(request.queue_id, request.pid); }
std::string TargetOf(const ipc::SetConfig& request) { return Target(request.queue_id, request.pid); }

std::string TextOf(uint32_t mask, const sched::Hints& hints) {
  std::string all;
  auto add = [&](uint32_t bit, const std::string& text) {
    if ((mask & bit) != 0) all += (all.empty() ? "" : ", ") + text;
  };
  add(ipc::kHintPriority, fmt::format("priority {}", hints.priority));
  add(ipc::kHintUtilization, fmt::format("utilization {}", hints.utilization));
  add(ipc::kHintDeadline, fmt::format("deadline {} µs", hints.deadline_us));
  add(ipc::kHintLaxity, fmt::format("laxity {} µs, priorities {} and {}", hints.laxity_us, hints.lax_priority,
                                    hints.critical_priority));
  add(ipc::kHintLaxityTime, fmt::format("laxity {} µs", hints.laxity_us));
  add(ipc::kHintWeight, fmt::format("weight {}", hints.weight));
  add(ipc::kHintReservation,
      fmt::format("guarantee {} of {} µs, limit {} µs, burst {} µs", hints.guarantee_us, hints.period_us,
                  hints.limit_us, hints.burst_us));
  add(ipc::kHintLatencyTarget, fmt::format("latency target {} µs", hints.latency_target_us));
  add(ipc::kHintFloor, fmt::format("floor {} %", hints.floor));
  return all;
}

std::string TextOf(const ipc::SetConfig& request) {
  return fmt::format("level {}, threshold {}, batch size {} (0: as before)", request.level, request.threshold,
                     request.batch_size);
}

std::string TextOf(const ipc::SetPolicy& request) {
  const std::string setting = CleanText(request.setting, sizeof request.setting);
  const sched::Policy* policy = sched::FindPolicyByNumber(request.policy);
  const std::string name = !setting.empty() ? setting : policy != nullptr ? policy->info().name : "as before";
  return fmt::format("{}, timeslice {} µs, k {} (0: as before)", name, request.timeslice_us,
                     request.at_a_time);
}

std::string TextOf(const sched::Scheduler& scheduler) {
  return fmt::format("{}, timeslice {} µs, k {}", TextOf(scheduler.setting()),
                     scheduler.timeslice() / std::chrono::microseconds(1), scheduler.at_a_time());
}

std::string TextOf(const TenantRules& rules) {
  if (rules.no_file) return "no file";
  return fmt::format("{} {}", rules.tenants.size(), rules.tenants.size() == 1 ? "entry" : "entries");
}

std::string ChangesIn(const TenantRules& from, const TenantRules& to) {
  std::vector<std::string> changed;
  const std::vector<std::string> common = NamesIn(to, from, /*shared=*/true);
  for (const std::string& name : common) {
    if (!(*RuleNamed(from, name) == *RuleNamed(to, name))) changed.push_back(name);
  }
  if (!(from.others == to.others)) changed.emplace_back("[default]");
  std::string text;
  AddNames(text, "added", NamesIn(to, from, /*shared=*/false));
  AddNames(text, "removed", NamesIn(from, to, /*shared=*/false));
  AddNames(text, "changed", changed);
  // The first entry that matches counts.
  if (common != NamesIn(from, to, /*shared=*/true))
    text += fmt::format("{}another order", text.empty() ? "" : "; ");
  return text.empty() ? "nothing changed" : text;
}

}  // namespace xsched::server
