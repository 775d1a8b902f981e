#include "sched/core/policy.h"

#include <strings.h>

#include "sched/policy_list.h"

namespace xsched::sched {
namespace {

constexpr struct {
  XPolicyType type;
  const char* name;
} kNamesIn12[] = {
    {kPolicyHighestPriorityFirst, "HPF"},        {kPolicyHeterogeneousHighestPriorityFirst, "HHPF"},
    {kPolicyCPUHighestPriorityFirst, "CHPF"},    {kPolicyUtilizationPartition, "UP"},
    {kPolicyProcessUtilizationPartition, "PUP"}, {kPolicyStrictProcessUtilizationPartition, "SPUP"},
    {kPolicyKEarliestDeadlineFirst, "KEDF"},     {kPolicyLaxity, "LAX"},
    {kPolicyActiveWindowFirst, "AWF"},           {kPolicyCompletelyFairScheduler, "CFS"},
    {kPolicyMultiLevelFeedbackQueue, "MLFQ"},
};

}  // namespace

std::span<const PolicyGetter> Policies() { return kPolicies; }

const Policy* FindPolicy(XPolicyType type) { return FindPolicyByNumber(static_cast<uint32_t>(type)); }

const Policy* FindPolicyByNumber(uint32_t number) {
  for (PolicyGetter policy : Policies()) {
    if (static_cast<uint32_t>(policy().type()) == number) return &policy();
  }
  return nullptr;
}

const Policy* FindPolicyByName(const char* name) {
  for (PolicyGetter policy : Policies()) {
    if (strcasecmp(policy().info().name, name) == 0) return &policy();
  }
  return nullptr;
}

const char* PolicyName(XPolicyType type) {
  if (const Policy* policy = FindPolicy(type)) return policy->info().name;
  for (const auto& known : kNamesIn12) {
    if (known.type == type) return known.name;
  }
  return "?";
}

}  // namespace xsched::sched
