// Stride scheduling, for policies in which one claimant runs at a time. A claimant's pass is the service that
// it has received per unit of weight; the one with the lowest pass is next. The device's clock is the lowest
// pass of those that the last decision had as well; with none, it stands still.
//
// A claimant that was away (idle, at its limit, or without a weight) comes back at the clock, or above it if
// it is still ahead: so idle time is no credit, and a short pause does not cancel a debt. A debt is what it
// was ahead of the others, also by a command that ran on for many time slices after a hold. Time that it had
// alone is none.
//
// A claimant that another policy of the chain has held comes back as far above the clock as it was: so what
// is owed among those that were held together stays, and what others had meanwhile counts for nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "sched/core/policy.h"

namespace xsched::sched {

// As of the last decision that it was in.
struct Stride {
  double pass;     // above the clock. So small weights of others, with large passes, cost it no precision
  double clock;    // StrideClock::passed then
  double debt;     // seconds of service that it has received more than the one with the lowest pass
  uint32_t seen;   // the number of that decision; 0: it has been away since
  bool contended;  // others were in it

  // It has received so many seconds since then.
  void Charge(double seconds, double weight) {
    pass += seconds / weight;
    if (contended) debt += seconds;
  }
  void Leave() { seen = 0; }
};

struct StrideClock {
  double passed;
  uint32_t decisions;
};

// Levels the claimants of a decision. `stride_of(claimant)`: its Stride, charged; null if the claimant has no
// part in it. `weight_of(claimant)`: more than 0. `least_debt`, in seconds: so much may be left to pay of any
// time.
void LevelStrides(std::span<QueueView> claimants, StrideClock& clock, double least_debt, auto&& stride_of,
                  auto&& weight_of) {
  constexpr double kNobody = std::numeric_limits<double>::infinity();
  const auto goes_on = [&](const Stride& stride) {
    return stride.seen != 0 && stride.seen == clock.decisions;
  };
  double lowest = kNobody;
  for (QueueView& claimant : claimants) {
    const Stride* stride = stride_of(claimant);
    if (stride != nullptr && goes_on(*stride)) lowest = std::min(lowest, stride->pass);
  }
  const double passed = lowest != kNobody ? lowest : 0;
  clock.passed += passed;
  lowest = kNobody;
  int count = 0;
  for (QueueView& claimant : claimants) {
    Stride* stride = stride_of(claimant);
    if (stride == nullptr) continue;
    if (goes_on(*stride)) {
      stride->pass -= passed;
    } else if (stride->seen != 0) {
      stride->pass = stride->debt / weight_of(claimant);
    } else {
      const double most = std::max(least_debt, stride->debt) / weight_of(claimant);
      stride->pass = std::clamp(stride->pass - (clock.passed - stride->clock), 0.0, most);
    }
    lowest = std::min(lowest, stride->pass);
    ++count;
  }
  if (count == 0) return;
  clock.decisions = std::max(clock.decisions + 1, 1u);
  for (QueueView& claimant : claimants) {
    Stride* stride = stride_of(claimant);
    if (stride == nullptr) continue;
    stride->clock = clock.passed;
    stride->debt = (stride->pass - lowest) * weight_of(claimant);
    stride->seen = clock.decisions;
    stride->contended = count > 1;
  }
}

}  // namespace xsched::sched
