// Predicts how long a queue's pause will be, which has just begun. A queue lingers in a short one: it still
// counts as ready for the policy, for programs bound by launch cost have many small gaps. A program that
// serves requests has none, and the others would wait for nothing.
//
// Pure.
#pragma once

#include "base/clock.h"

namespace xsched::sched {

class Pauses {
 public:
  // The queue has retired everything.
  void Begin(TimePoint now) { began_ = now; }
  // It has work again.
  void End(TimePoint now, Duration grace);
  // When a lingering queue counts as idle.
  TimePoint IdleAt(Duration grace) const { return long_ones_ < trusted_after_ ? began_ + grace : began_; }

 private:
  TimePoint began_{};
  // How many in a row were longer than the grace period. After `trusted_after_` of them the next one is
  // predicted to be long.
  int long_ones_ = 0;
  int trusted_after_ = 4;
};

}  // namespace xsched::sched
