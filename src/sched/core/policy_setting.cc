#include "sched/core/policy_setting.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

#include "sched/core/reservation.h"

namespace xsched::sched {
namespace {

constexpr Granularity kGranularities[] = {Granularity::kQueue, Granularity::kProcess, Granularity::kTenant};

// One policy of a chain: "NAME" or "NAME:what".
Result<PolicySetting::Layer> ParseLayer(char* text) {
  char* const colon = strchr(text, ':');
  if (colon != nullptr) *colon = '\0';
  const Policy* const policy = FindPolicyByName(text);
  if (policy == nullptr) return Error::Make("there is no policy %s", text);
  if (colon == nullptr) return PolicySetting::Layer{policy, policy->info().granularity};
  for (Granularity by : kGranularities) {
    if (strcasecmp(colon + 1, GranularityName(by)) == 0) return PolicySetting::Layer{policy, by};
  }
  return Error::Make("a policy decides by queue, by process or by tenant, not by %s", colon + 1);
}

}  // namespace

const char* GranularityName(Granularity by) {
  switch (by) {
    case Granularity::kQueue:
      return "queue";
    case Granularity::kProcess:
      return "process";
    case Granularity::kTenant:
      return "tenant";
  }
  return "?";
}

bool PolicySetting::Add(const Layer& layer) {
  if (count_ == kMostPolicies) return false;
  Append(layer);
  return true;
}

void PolicySetting::Append(const Layer& layer) {
  layers_[count_++] = layer;
  const PolicyInfo& info = layer.policy->info();
  compares_all_devices_ |= info.scope == Scope::kAllDevices;
  has_limits_ |= info.has_limits;
  shows_processes_ |= layer.by != Granularity::kQueue || info.sees_processes;
  steady_ &= info.steady;
  charges_overruns_ &= info.charges_overruns;
  keeps_busy_ &= info.keeps_busy;
}

bool PolicySetting::DecidesAbout(Granularity what) const {
  return Any([what](const Layer& layer) { return layer.by == what; });
}

bool PolicySetting::CanLimit(const ShownHints& hints) const {
  return Any([&](const Layer& layer) {
    return layer.policy->info().has_limits && hints.For(layer.by).limit_us > 0;
  });
}

bool PolicySetting::Reads(bool HintsRead::*hint) const {
  return Any([hint](const Layer& layer) { return layer.policy->info().hints.*hint; });
}

uint8_t PolicySetting::LayersThatTellApart(const Hints& one, const Hints& other) const {
  return LayersWhose([&](const HintsRead& reads) {
    return (reads.priority && one.priority != other.priority) ||
           (reads.utilization && one.utilization != other.utilization) ||
           (reads.deadline && one.deadline_us != other.deadline_us) ||
           (reads.laxity && (one.laxity_us != other.laxity_us || one.lax_priority != other.lax_priority ||
                             one.critical_priority != other.critical_priority)) ||
           (reads.weight && one.weight != other.weight) ||
           (reads.reservation && !HasReservationOf(one, other)) ||
           (reads.latency_target && one.latency_target_us != other.latency_target_us) ||
           (reads.floor && one.floor != other.floor);
  });
}

uint8_t PolicySetting::LayersThatTellApart(const ProcessFacts& one, const ProcessFacts& other) const {
  return LayersWhose([&](const HintsRead& reads) {
    return (reads.cpu_priority && one.cpu_priority != other.cpu_priority) ||
           (reads.window_active && one.window_active != other.window_active);
  });
}

bool PolicySetting::CanHold(const ShownHints& victim, const ShownHints& rival, bool same_process) const {
  for (const Layer& layer : layers()) {
    if (same_process && layer.by != Granularity::kQueue) continue;
    const Hints& hints = victim.For(layer.by);
    const Hints& rivals = rival.For(layer.by);
    if (layer.policy->CanHold(hints, rivals)) return true;
    // By such a claim the rival never runs beside the victim. So no further policy compares the two.
    if (layer.policy->info().claim != ClaimBy::kOther && layer.policy->CanHold(rivals, hints)) return false;
  }
  return false;
}

bool PolicySetting::HasBetterClaim(const ShownHints& rival, const ShownHints& queue) const {
  for (const Layer& layer : layers()) {
    const bool holds = layer.policy->CanHold(queue.For(layer.by), rival.For(layer.by));
    const bool is_held = layer.policy->CanHold(rival.For(layer.by), queue.For(layer.by));
    if (holds || is_held) return holds && !is_held;
  }
  return false;
}

Division PolicySetting::Divide(std::span<ProcessView> processes, size_t at_a_time) const {
  for (const Layer& layer : layers()) {
    // Several that run together are on the device together.
    if (layer.policy->info().hints.at_a_time && at_a_time > 1) continue;
    const Division division = layer.policy->Divide(processes);
    if (division == Division::kNone) continue;
    // Slices that divide the device alone hold nobody. The other policies of a chain could not decide. And
    // they are slices of processes, while a tenant may have any number of these.
    const bool holds = count_ > 1 || layer.by == Granularity::kTenant;
    return division == Division::kAlone && holds ? OnlyTheRunningOne(processes) : division;
  }
  return Division::kNone;
}

Result<PolicySetting> ParsePolicySetting(const char* text) {
  char copy[kPolicyTextSize];
  const size_t length = strlen(text);
  if (length >= sizeof copy)
    return Error::Make("a policy's text has at most %zu characters", sizeof copy - 1);
  memcpy(copy, text, length + 1);
  char* next = copy;
  auto parse_next = [&next] {
    char* const layer = next;
    char* const slash = strchr(layer, '/');
    if (slash != nullptr) *slash = '\0';
    next = slash == nullptr ? nullptr : slash + 1;
    return ParseLayer(layer);
  };
  Result<PolicySetting::Layer> first = parse_next();
  if (!first) return first.error();
  PolicySetting setting(*first->policy, first->by);
  while (next != nullptr) {
    Result<PolicySetting::Layer> layer = parse_next();
    if (!layer) return layer.error();
    if (!setting.Add(*layer)) return Error::Make("at most %zu policies can be combined", kMostPolicies);
  }
  return setting;
}

void WritePolicySetting(const PolicySetting& setting, char (&text)[kPolicyTextSize]) {
  text[0] = '\0';
  for (const PolicySetting::Layer& layer : setting.layers()) {
    const PolicyInfo& info = layer.policy->info();
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s%s%s", used == 0 ? "" : "/", info.name,
             layer.by == info.granularity ? "" : ":",
             layer.by == info.granularity ? "" : GranularityName(layer.by));
  }
}

}  // namespace xsched::sched
