#include "sched/core/watch.h"

#include <algorithm>

#include "sched/core/scheduler.h"

namespace xsched::sched {
namespace {

// The longest time between two queries while there is no answer.
constexpr Duration kLongestAskDelay = std::chrono::milliseconds(2);
// During an episode the queue was asked often already, so fewer queries are enough.
constexpr Duration kFirstAskDelayInWindow = std::chrono::milliseconds(2);
constexpr Duration kLongestAskDelayInWindow = std::chrono::milliseconds(100);
constexpr Duration kFirstAskDelayRestored = std::chrono::milliseconds(8);
constexpr Duration kLongestAskDelayRestored = std::chrono::milliseconds(32);
// The length of a window that stays open until there is progress.
constexpr Duration kEndless = Duration::max();

}  // namespace

TimePoint Watch::StallAt(const SchedulerConfig& config) const {
  return asked_at_ == kNever ? kNever : asked_at_ + (config.stall_after - watched_);
}

TimePoint Watch::WindowEnd() const {
  if (window_since_ == kNever || window_left_ == kEndless) return kNever;
  return window_since_ + window_left_;
}

bool Watch::Age(TimePoint now, const SchedulerConfig& config) {
  if (open_) {
    if (now < WindowEnd()) return false;
    open_ = watching_ = false;
    watched_ = Duration::zero();
    return false;
  }
  return now >= StallAt(config) && LetGo(now, config);
}

bool Watch::LetGo(TimePoint now, const SchedulerConfig& config) {
  if (windows_ == 0) stalled_since_ = since_;
  // Doubles only until the longest window is reached.
  Duration length = config.first_window;
  for (int i = 0; i < windows_ && length < config.endless_window; ++i) length *= 2;
  ++windows_;
  open_ = true;
  window_since_ = kNever;
  window_left_ = length < config.endless_window ? length : kEndless;
  asked_at_ = kNever;
  ask_delay_ = kFirstAskDelayInWindow;
  ask_at_ = now + ask_delay_;
  return windows_ == 1;
}

TimePoint Watch::StepWindow(TimePoint now, bool released, bool& ask) {
  if (!released) {
    if (window_since_ != kNever && window_left_ != kEndless) window_left_ -= now - window_since_;
    window_since_ = kNever;
    return kNever;
  }
  if (window_since_ == kNever) window_since_ = now;
  ask = now >= ask_at_;
  if (ask) NextAsk(now, kLongestAskDelayInWindow);
  return std::min(ask_at_, WindowEnd());
}

void Watch::NextAsk(TimePoint now, Duration longest_delay) {
  ask_at_ = now + ask_delay_;
  ask_delay_ = std::min(ask_delay_ * 2, longest_delay);
}

Watch::Times Watch::Step(TimePoint now, const Chance& chance, const SchedulerConfig& config, bool& ask) {
  ask = false;
  if (open_) return {.decide_at = StepWindow(now, chance.released, ask)};
  if (!chance.watchable) {
    if (asked_at_ != kNever) watched_ += now - asked_at_;
    asked_at_ = kNever;
    watching_ = false;
    return {};
  }
  if (!watching_) {
    watching_ = true;
    if (stalled()) {
      // It has left many queries unanswered, so time counts at once.
      asked_at_ = ask_at_ = now;
      ask_delay_ = kFirstAskDelayRestored;
      if (watched_ == Duration::zero()) {
        since_ = now;
        ask_at_ += ask_delay_;
      }
    } else {
      const bool goes_on = watched_ != Duration::zero();
      ask_delay_ = goes_on ? kLongestAskDelay : chance.ask_after;
      ask_at_ = goes_on ? now : std::max(now, heard_at_ + chance.ask_after);
    }
  }
  if (chance.held_since > since_) {
    // All queues that were held when it was first asked have run since. It may wait for one that was held
    // later, so the time before that does not count any more.
    watched_ = std::max(Duration::zero(), watched_ - (chance.held_since - since_));
    since_ = chance.held_since;
    if (asked_at_ != kNever) asked_at_ = std::max(asked_at_, chance.held_since);
  }
  if (now >= ask_at_) {
    ask = true;
    if (asked_at_ == kNever) {
      asked_at_ = now;
      if (watched_ == Duration::zero()) since_ = now;
    }
    NextAsk(now, stalled() ? kLongestAskDelayRestored : kLongestAskDelay);
  }
  return {.ask_at = ask_at_, .decide_at = StallAt(config)};
}

}  // namespace xsched::sched
