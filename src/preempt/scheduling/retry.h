// When to try a failed operation again: soon at first, then less and less often. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace xsched::preempt {

class Retry {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(5);
  static constexpr Duration kLast = std::chrono::milliseconds(200);

  bool due(TimePoint now) const { return now >= at_; }
  // kNever: nothing has failed.
  TimePoint next() const { return at_ == TimePoint{} ? kNever : at_; }

  void Failed(TimePoint now) {
    at_ = now + delay_;
    delay_ = std::min(delay_ * 2, kLast);
  }
  // It has succeeded, or another operation will be tried.
  void Reset() {
    at_ = TimePoint{};
    delay_ = kFirst;
  }

 private:
  TimePoint at_{};
  Duration delay_ = kFirst;
};

}  // namespace xsched::preempt
