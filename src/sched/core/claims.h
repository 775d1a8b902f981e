// Compares how urgent queues are.
#pragma once

#include "sched/core/policy_setting.h"

namespace xsched::sched {

struct DeviceRecord;

// A queue's hints, with the effective priority.
struct Claim {
  bool valid = false;
  ShownHints hints;
  DeviceRecord* device = nullptr;

  bool operator==(const Claim&) const = default;
};

inline void TakeMoreUrgent(const PolicySetting& setting, Claim& best, const Claim& claim) {
  if (claim.valid && (!best.valid || setting.HasBetterClaim(claim.hints, best.hints))) best = claim;
}

}  // namespace xsched::sched
