// The launch config of XSched 1.2: bounds on the commands in flight.
#pragma once

#include <cstdint>

namespace xsched::preempt {

inline constexpr int64_t kDefaultThreshold = 16;
inline constexpr int64_t kDefaultBatchSize = 8;

struct LaunchConfig {
  int64_t threshold = kDefaultThreshold;   // commands in flight
  int64_t batch_size = kDefaultBatchSize;  // commands launched at a time
};

}  // namespace xsched::preempt
