// Policies by type and by name.
#include <strings.h>

#include "sched/policy/policies.h"

namespace xsched::sched {
namespace {

struct Entry {
  XPolicyType type;
  const char* name;
  const Policy& (*policy)();  // null: known by name only
};

constexpr Entry kEntries[] = {
    {kPolicyHighestPriorityFirst, "HPF", HighestPriorityFirstPolicy},
    {kPolicyHeterogeneousHighestPriorityFirst, "HHPF", nullptr},
    {kPolicyCPUHighestPriorityFirst, "CHPF", nullptr},
    {kPolicyUtilizationPartition, "UP", UtilizationPartitionPolicy},
    {kPolicyProcessUtilizationPartition, "PUP", nullptr},
    {kPolicyStrictProcessUtilizationPartition, "SPUP", nullptr},
    {kPolicyKEarliestDeadlineFirst, "KEDF", nullptr},
    {kPolicyLaxity, "LAX", nullptr},
    {kPolicyActiveWindowFirst, "AWF", nullptr},
    {kPolicyCompletelyFairScheduler, "CFS", nullptr},
    {kPolicyMultiLevelFeedbackQueue, "MLFQ", nullptr},
};

}  // namespace

const Policy* FindPolicy(XPolicyType type) {
  for (const Entry& entry : kEntries) {
    if (entry.type == type && entry.policy != nullptr) return &entry.policy();
  }
  return nullptr;
}

const Policy* FindPolicyByName(const char* name) {
  for (const Entry& entry : kEntries) {
    if (strcasecmp(entry.name, name) == 0 && entry.policy != nullptr) return &entry.policy();
  }
  return nullptr;
}

const char* PolicyName(XPolicyType type) {
  for (const Entry& entry : kEntries) {
    if (entry.type == type) return entry.name;
  }
  return "?";
}

}  // namespace xsched::sched
