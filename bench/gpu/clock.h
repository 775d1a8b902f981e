// One clock for all processes of a measurement: CLOCK_MONOTONIC.
#pragma once

#include <chrono>
#include <thread>

namespace xsched::bench {

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void SleepUntil(double when) {
  const double left = when - Seconds();
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
}

}  // namespace xsched::bench
