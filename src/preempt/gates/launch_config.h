// What bounds the commands in flight: the launch config of XSched 1.2, and the wanted preemption latency.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace xsched::preempt {

inline constexpr int64_t kDefaultThreshold = 16;
inline constexpr int64_t kDefaultBatchSize = 8;

struct LaunchConfig {
  int64_t threshold = kDefaultThreshold;   // commands in flight
  int64_t batch_size = kDefaultBatchSize;  // commands launched at a time
};

// The wanted time from a hold until the queue stops: for gates that the host opens and for waiting callers,
// and for device-side gates.
inline constexpr Duration kHostGateLatency = std::chrono::microseconds(2000);
inline constexpr Duration kDeviceGateLatency = std::chrono::microseconds(100);

}  // namespace xsched::preempt
