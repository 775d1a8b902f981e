#include "sched/core/launch_bound.h"

#include <algorithm>
#include <utility>

namespace xsched::sched {
namespace {

// If a launch is under way, the driver is not asked, and the sample says "at work". So a device that is idle
// for half of the time is found idle less often than that.
constexpr int kSamples = 16;
constexpr int kIdleEnough = 5;
constexpr Duration kFirstPeriod = std::chrono::milliseconds(100);
constexpr Duration kLongestPeriod = std::chrono::milliseconds(1600);

}  // namespace

bool LaunchBound::Asked(TimePoint now) {
  // Without an answer, the device was at work when it was asked before.
  return std::exchange(asked_, true) && Count(false, now);
}

void LaunchBound::FoundIdle() { found_idle_ |= std::exchange(asked_, false); }

bool LaunchBound::Resumed(bool soon, TimePoint now) {
  return std::exchange(found_idle_, false) && soon && Count(true, now);
}

bool LaunchBound::Count(bool idle, TimePoint now) {
  if (LeavesGaps(now)) return false;
  idle_ += static_cast<int>(idle);
  if (++samples_ < kSamples) return false;
  const bool bound = idle_ >= kIdleEnough;
  samples_ = idle_ = 0;
  if (!bound) return std::exchange(period_, Duration::zero()) != Duration::zero();
  period_ = is_bound() ? std::min(2 * period_, kLongestPeriod) : kFirstPeriod;
  until_ = now + period_;
  return true;
}

}  // namespace xsched::sched
