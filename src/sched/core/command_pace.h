// How long the device needs for a command of a queue: the mean of its latest ones.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace xsched::sched {

class CommandPace {
 public:
  bool known() const { return count_ > 0; }
  // How long so many commands take. Zero: not known.
  Duration Of(uint64_t count) const {
    if (!known()) return Duration::zero();
    const double time = time_ / count_ * static_cast<double>(count);
    return Duration(static_cast<int64_t>(std::min(time, kLongest)));
  }
  // So many commands took so long together. Times and counts are added up, because a report may come at any
  // time within a command.
  void Measure(Duration time, uint64_t count) {
    if (time <= Duration::zero() || count == 0) return;
    time_ = time_ * kKept + static_cast<double>(time.count());
    count_ = count_ * kKept + static_cast<double>(count);
  }
  // The commands that were measured took so much longer.
  void Lengthen(Duration time) {
    if (known()) time_ += static_cast<double>(time.count());
  }

 private:
  static constexpr double kKept = 7.0 / 8;  // of the former ones, with each measurement
  static constexpr double kLongest = 1e15;  // so that sums of times stay in range

  double time_ = 0;  // ns
  double count_ = 0;
};

}  // namespace xsched::sched
