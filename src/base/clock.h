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

  static time_point now() noexcept { return Read(CLOCK_MONOTONIC); }
  // A few milliseconds earlier at most, and much cheaper: the time of the kernel's last tick.
  static time_point roughly_now() noexcept { return Read(CLOCK_MONOTONIC_COARSE); }

 private:
  static time_point Read(clockid_t clock) noexcept {
    timespec ts{};
    clock_gettime(clock, &ts);
    return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
  }
};

using Duration = MonotonicClock::duration;
using TimePoint = MonotonicClock::time_point;

// Later than any real time: "never".
inline constexpr TimePoint kNever = TimePoint::max();

// Where time is passed to a class as the function that reads it.
using Clock = TimePoint (*)();

constexpr double InSeconds(Duration time) { return std::chrono::duration<double>(time).count(); }

inline void SleepFor(Duration time) {
  timespec ts{};
  ts.tv_sec = time / std::chrono::seconds(1);
  ts.tv_nsec = (time % std::chrono::seconds(1)).count();
  nanosleep(&ts, nullptr);
}

}  // namespace xsched
