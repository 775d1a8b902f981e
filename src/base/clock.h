// Monotonic time, with units in the type. The scheduler never reads the clock: time is passed to it.
#pragma once

#include <time.h>

#include <chrono>

namespace xsched {

struct MonotonicClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
  }
};

using Duration = MonotonicClock::duration;
using TimePoint = MonotonicClock::time_point;

// Later than any time that occurs: "never".
inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace xsched
