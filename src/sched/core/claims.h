// How urgent queues are, beside each other.
#pragma once

#include "sched/core/policy.h"

namespace xsched::sched {

struct DeviceRecord;

// A queue's hints, with the effective priority.
struct Claim {
  bool valid = false;
  Hints hints;
  DeviceRecord* device = nullptr;

  bool operator==(const Claim&) const = default;
};

// May `rival` hold the queue, and never the reverse?
inline bool HasBetterClaim(const Policy& policy, const Hints& rival, const Hints& queue) {
  return policy.CanHold(queue, rival) && !policy.CanHold(rival, queue);
}

inline void TakeMoreUrgent(const Policy& policy, Claim& best, const Claim& claim) {
  if (claim.valid && (!best.valid || HasBetterClaim(policy, claim.hints, best.hints))) best = claim;
}

}  // namespace xsched::sched
