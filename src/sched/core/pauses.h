// Predicts whether a pause of a queue will be short. In a short pause the queue lingers: the policy still
// counts it as ready, because programs that are bound by launch cost have many small gaps. A program that
// serves requests has only long pauses. If it lingered, others would wait for nothing.
//
// Pure.
#pragma once

#include "base/clock.h"

namespace xsched::sched {

class Pauses {
 public:
  // The queue has retired everything.
  void Begin(TimePoint now) { began_ = now; }
  // It has work again. Returns whether the pause was short.
  bool End(TimePoint now, Duration grace);
  // When a lingering queue counts as idle.
  TimePoint IdleAt(Duration grace) const { return long_ones_ < trusted_after_ ? began_ + grace : began_; }

 private:
  TimePoint began_{};
  // How many pauses in a row were longer than the grace period. After `trusted_after_` of them the next one
  // is predicted to be long.
  int long_ones_ = 0;
  int trusted_after_ = 4;
};

}  // namespace xsched::sched
