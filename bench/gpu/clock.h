// One clock for all processes of a measurement: CLOCK_MONOTONIC.
#pragma once

#include <chrono>

namespace xsched::bench {

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace xsched::bench
