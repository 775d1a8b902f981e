#include "sched/core/silence.h"

#include <algorithm>

#include "sched/core/scheduler.h"

namespace xsched::sched {
namespace {

// How much longer than a queue's own watch this waits, because that watch or the next turn may be enough.
constexpr Duration kLonger = std::chrono::milliseconds(10);
// How long a queue has to answer before it counts as silent.
constexpr Duration kTimeToAnswer = std::chrono::milliseconds(10);

}  // namespace

void Silence::Break(TimePoint at, TimePoint now) {
  if (since_ != kNever) since_ = std::max(since_, at);
  asked_ = Duration::zero();
  if (asked_since_ != kNever) asked_since_ = now;
}

void Silence::Forgive(Duration late) {
  if (since_ != kNever) since_ += late;
  if (asked_since_ != kNever) asked_since_ += late;
}

void Silence::Count(bool taken, bool asked, TimePoint now) {
  if (!taken) {
    *this = Silence{};
    return;
  }
  if (since_ == kNever) since_ = now;
  if (asked && asked_since_ == kNever) {
    asked_since_ = now;
  } else if (!asked && asked_since_ != kNever) {
    asked_ += now - asked_since_;
    asked_since_ = kNever;
  }
}

TimePoint Silence::Until(const SchedulerConfig& config) const {
  if (asked_since_ == kNever) return kNever;
  return std::max(since_ + config.stall_after + kLonger, asked_since_ + (kTimeToAnswer - asked_));
}

}  // namespace xsched::sched
