#include "cli/simulate/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace xsched::cli {
namespace {

std::string Row(const std::string& scheme, const QueueOutcome& queue, size_t scheme_width,
                size_t queue_width) {
  std::string times = fmt::format("{:>10} {:>10} {:>10}", "-", "-", "-");
  if (queue.tasks > 0)
    times = fmt::format("{:>10.3f} {:>10.3f} {:>10.3f}", queue.p50_ms, queue.p99_ms, queue.max_ms);
  const std::string missed = queue.has_deadline ? fmt::format("{}", queue.missed) : "-";
  return fmt::format("{:<{}}  {:<{}} {} {:>8} {:>8} {:>12.1f} {:>7.1f}\n", scheme, scheme_width, queue.name,
                     queue_width, times, queue.tasks, missed, queue.commands_per_second, queue.share * 100);
}

// A table of its own; empty: the load names no tenant.
std::string TenantsText(std::span<const Outcome> outcomes, size_t scheme_width) {
  size_t width = 6;
  for (const Outcome& outcome : outcomes) {
    for (const TenantOutcome& tenant : outcome.tenants) width = std::max(width, tenant.name.size());
  }
  std::string rows;
  for (const Outcome& outcome : outcomes) {
    const std::string* name = &outcome.scheme.name;
    const std::string none;
    for (const TenantOutcome& tenant : outcome.tenants) {
      rows += fmt::format("{:<{}}  {:<{}} {:>12.1f} {:>7.1f}\n", *name, scheme_width, tenant.name, width,
                          tenant.commands_per_second, tenant.share * 100);
      name = &none;
    }
  }
  if (rows.empty()) return rows;
  return fmt::format("\n{:<{}}  {:<{}} {:>12} {:>7}\n", "POLICY", scheme_width, "TENANT", width, "COMMANDS/s",
                     "TIME %") +
         rows;
}

nlohmann::json TenantsJson(const Outcome& outcome) {
  nlohmann::json tenants = nlohmann::json::array();
  for (const TenantOutcome& tenant : outcome.tenants) {
    tenants.push_back({{"tenant", tenant.name},
                       {"commands_per_second", tenant.commands_per_second},
                       {"share", tenant.share}});
  }
  return tenants;
}

}  // namespace

std::string OutcomesText(std::span<const Outcome> outcomes) {
  size_t scheme_width = 6;
  size_t queue_width = 5;
  for (const Outcome& outcome : outcomes) {
    scheme_width = std::max(scheme_width, outcome.scheme.name.size());
    for (const QueueOutcome& queue : outcome.queues) queue_width = std::max(queue_width, queue.name.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}} {:>10} {:>10} {:>10} {:>8} {:>8} {:>12} {:>7}\n", "POLICY",
                                 scheme_width, "QUEUE", queue_width, "P50 ms", "P99 ms", "MAX ms", "TASKS",
                                 "MISSED", "COMMANDS/s", "TIME %");
  for (const Outcome& outcome : outcomes) {
    const std::string* name = &outcome.scheme.name;
    const std::string none;
    for (const QueueOutcome& queue : outcome.queues) {
      text += Row(*name, queue, scheme_width, queue_width);
      name = &none;
    }
  }
  return text + TenantsText(outcomes, scheme_width);
}

nlohmann::json OutcomesJson(std::span<const Outcome> outcomes) {
  nlohmann::json all = nlohmann::json::array();
  for (const Outcome& outcome : outcomes) {
    nlohmann::json queues = nlohmann::json::array();
    for (const QueueOutcome& queue : outcome.queues) {
      nlohmann::json row = {{"queue", queue.name},
                            {"tasks", queue.tasks},
                            {"commands_per_second", queue.commands_per_second},
                            {"share", queue.share}};
      if (queue.tasks > 0) {
        row["p50_ms"] = queue.p50_ms;
        row["p99_ms"] = queue.p99_ms;
        row["max_ms"] = queue.max_ms;
      }
      if (queue.has_deadline) row["missed"] = queue.missed;
      queues.push_back(std::move(row));
    }
    nlohmann::json& one =
        all.emplace_back(nlohmann::json{{"policy", outcome.scheme.name}, {"queues", std::move(queues)}});
    if (!outcome.tenants.empty()) one["tenants"] = TenantsJson(outcome);
  }
  return all;
}

}  // namespace xsched::cli
