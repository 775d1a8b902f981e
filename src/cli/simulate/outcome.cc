#include "cli/simulate/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "cli/exit_codes.h"
#include "cli/statistics.h"
#include "server/policy_names.h"

namespace xsched::cli {
namespace {

constexpr const char* kNative = "native";
constexpr const char* kFifo = "FIFO";

Scheme SchemeOf(const sched::PolicySetting& policy) {
  return {.name = server::TextOf(policy), .policy = policy};
}

// The figures of all queues that have the name of `first`.
QueueOutcome Together(const sched::sim::Load& load, const Scheme& scheme, const sched::sim::Result& result,
                      size_t first, bool distributions) {
  QueueOutcome together{.name = load.queues[first].name};
  const double length = InSeconds(result.length);
  std::vector<double> latencies_ms;
  std::vector<Duration> ages;
  Duration longest{};
  const auto add = [&](Duration latency) {
    latencies_ms.push_back(InSeconds(latency) * 1e3);
    if (distributions) together.latencies.Add(latency);
  };
  for (size_t i = first; i < load.queues.size(); ++i) {
    if (load.queues[i].name != together.name) continue;
    const sched::sim::QueueResult& queue = result.queues[i];
    for (Duration latency : queue.latencies) {
      add(latency);
      longest = std::max(longest, latency);
    }
    ages.insert(ages.end(), queue.ages.begin(), queue.ages.end());
    load.queues[i].ForEachHints([&](const sched::Hints& hints) {
      const sched::Hints counted = scheme.hints.empty() ? hints : scheme.hints[i].Over(hints);
      together.has_deadline |= counted.deadline_us >= 0;
    });
    together.missed += queue.missed;
    together.commands_per_second += static_cast<double>(queue.commands) / length;
    together.share += InSeconds(queue.device_time) / length;
  }
  together.tasks = latencies_ms.size();
  // A task that has just come says nothing yet. One that has waited for longer than any other took does.
  for (Duration age : ages) {
    if (age > longest) add(age);
  }
  const Summary summary = Summarize(std::move(latencies_ms));
  together.p50_ms = summary.p50;
  together.p99_ms = summary.p99;
  together.max_ms = summary.max;
  return together;
}

std::vector<TenantOutcome> TenantsOf(const sched::sim::Load& load, const sched::sim::Result& result) {
  std::vector<TenantOutcome> tenants;
  for (const std::string& name : load.tenant_names) tenants.push_back({.name = name});
  const double length = InSeconds(result.length);
  for (size_t i = 0; i < result.queues.size(); ++i) {
    const uint64_t tenant = load.processes[static_cast<size_t>(load.queues[i].process)].tenant;
    if (tenant == 0) continue;
    tenants[tenant - 1].commands_per_second += static_cast<double>(result.queues[i].commands) / length;
    tenants[tenant - 1].share += InSeconds(result.queues[i].device_time) / length;
  }
  return tenants;
}

}  // namespace

Scheme SchemeByName(const std::string& name) {
  if (strcasecmp(name.c_str(), kNative) == 0) return {.name = kNative};
  if (strcasecmp(name.c_str(), kFifo) == 0) return {.name = kFifo, .order = sched::sim::Order::kByArrival};
  try {
    return SchemeOf(server::SettingOrThrow(name));
  } catch (const std::runtime_error& error) {
    throw CommandError(kExitUsage,
                       fmt::format("{}; or {} or {}: without a scheduler", error.what(), kNative, kFifo));
  }
}

std::vector<Scheme> AllSchemes() {
  std::vector<Scheme> all = {SchemeByName(kNative), SchemeByName(kFifo)};
  for (sched::PolicyGetter policy : sched::Policies()) all.push_back(SchemeOf(policy()));
  return all;
}

Scheme WithAtATime(const Scheme& scheme, size_t at_a_time) {
  if (!scheme.policy || !scheme.policy->Reads(&sched::HintsRead::at_a_time)) return scheme;
  Scheme next = scheme;
  next.at_a_time = at_a_time;
  next.name += fmt::format(", k {}", at_a_time);
  return next;
}

const QueueOutcome* Outcome::Find(const std::string& name) const {
  const auto found = std::find_if(queues.begin(), queues.end(),
                                  [&](const QueueOutcome& queue) { return queue.name == name; });
  return found == queues.end() ? nullptr : &*found;
}

Outcome Predict(const sched::sim::Load& load, const Scheme& scheme, Duration warm_up, bool distributions) {
  sched::sim::Conditions conditions;
  conditions.policy = scheme.policy;
  conditions.order = scheme.order;
  conditions.hints = scheme.hints;
  conditions.warm_up = warm_up;
  conditions.config.timeslice = scheme.timeslice;
  if (scheme.at_a_time) conditions.config.at_a_time = *scheme.at_a_time;
  return OutcomeOf(load, scheme, Simulate(load, conditions), distributions);
}

std::vector<Outcome> PredictAll(const sched::sim::Load& load, const std::vector<Scheme>& schemes,
                                Duration warm_up, bool distributions) {
  std::vector<Outcome> outcomes(schemes.size());
  std::atomic<size_t> next = 0;
  const auto predict = [&] {
    for (size_t i = next++; i < schemes.size(); i = next++)
      outcomes[i] = Predict(load, schemes[i], warm_up, distributions);
  };
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < std::min(processors, schemes.size()); ++i)
    others.push_back(std::async(std::launch::async, predict));
  predict();
  for (std::future<void>& other : others) other.get();
  return outcomes;
}

void SetRights(sched::sim::Load& load, const server::TenantRules& rules) {
  for (size_t i = 0; i < load.tenant_names.size(); ++i) {
    const server::TenantRights& rights = rules.RightsOf(load.tenant_names[i]);
    load.tenants[i + 1] = rights.share;
    load.max_priorities[i + 1] = rights.max_priority;
  }
}

Outcome OutcomeOf(const sched::sim::Load& load, const Scheme& scheme, const sched::sim::Result& result,
                  bool distributions) {
  Outcome outcome{scheme, {}};
  outcome.tenants = TenantsOf(load, result);
  for (size_t i = 0; i < result.queues.size(); ++i) {
    if (outcome.Find(load.queues[i].name) == nullptr)
      outcome.queues.push_back(Together(load, scheme, result, i, distributions));
  }
  return outcome;
}

}  // namespace xsched::cli
