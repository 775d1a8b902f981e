#include "sched/core/silence.h"

#include <algorithm>

#include "sched/core/scheduler.h"

namespace xsched::sched {
namespace {

// A queue's own watch, and the next turn, may make the device go on before it is let go of as a whole.
constexpr Duration kLonger = std::chrono::milliseconds(10);
// So long a queue has to answer before its silence is believed.
constexpr Duration kAnswerTime = std::chrono::milliseconds(10);

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

TimePoint Silence::AskAt(const SchedulerConfig& config) const {
  return since_ == kNever ? kNever : since_ + config.stall_after / 2;
}

TimePoint Silence::Until(const SchedulerConfig& config) const {
  if (asked_since_ == kNever) return kNever;
  return std::max(since_ + config.stall_after + kLonger, asked_since_ + (kAnswerTime - asked_));
}

}  // namespace xsched::sched
