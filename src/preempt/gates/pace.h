// Measures how fast a queue retires commands, and computes how many it may have in flight. Pure: time is
// passed in.
//
// XSched 1.2's launch config (threshold, batch size) bounds the count. The wanted preemption latency bounds
// it as well, because commands in flight still run when a queue is held. So long commands run one by one, and
// short ones in batches, which makes the cost of a gate small.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace xsched::preempt {

class Pace {
 public:
  // `retired` further commands have finished by `now`. The device began with them at `since` or later.
  void OnRetired(uint64_t retired, TimePoint since, TimePoint now) {
    if (retired == 0 || now <= since) return;
    const Duration each = std::min((now - since) / static_cast<int64_t>(retired), kLongest);
    // The estimate rises at once, because one that is too low costs latency. It falls slowly.
    mean_ = each > mean_ ? each : mean_ - (mean_ - each) / 8;
    if (mean_ <= Duration::zero()) mean_ = Duration(1);
  }

  // Longer commands count as long as this. In what looks like one, the device may have waited for the
  // program.
  static constexpr Duration kLongest = std::chrono::milliseconds(2500);

  // Until the first retirement is seen, commands may be of any length.
  static constexpr int64_t kLimitWhileUnknown = 2;

  // How many commands may be in flight, or between two gates: at least one, at most `most`, and no more than
  // finish within `latency`.
  int64_t Limit(int64_t most, Duration latency, int64_t while_unknown = kLimitWhileUnknown) const {
    if (!known()) return std::min(most, while_unknown);
    return std::clamp<int64_t>(latency / mean_, 1, most);
  }

  // How many commands to let through at a time: half of the limit, so that the device always has work.
  static int64_t Batch(int64_t limit, int64_t batch_size) {
    return std::clamp<int64_t>(limit / 2, 1, batch_size);
  }

  bool known() const { return mean_ != Duration::zero(); }
  Duration mean() const { return mean_; }

 private:
  Duration mean_{};
};

}  // namespace xsched::preempt
