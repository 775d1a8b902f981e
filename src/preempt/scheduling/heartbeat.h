// Finds out whether the server is alive. This matters only while something is taken from this process,
// because a hanging server would never give it back. Pure: time in, what to do out.
#pragma once

#include "base/clock.h"

namespace xsched::preempt {

class Heartbeat {
 public:
  static constexpr Duration kEvery = std::chrono::milliseconds(60);
  static constexpr Duration kPatience = std::chrono::milliseconds(170);

  enum class Verdict { kFine, kAsk, kHangs };

  // A connection begins, or the server has sent anything.
  void Heard() { asked_ = false; }

  // Call it at `next` or earlier, and after everything that has arrived was handled: if this process did not
  // run for a while, the answer may have arrived already. kAsk: send a ping now.
  Verdict Look(bool taken, TimePoint now) {
    if (!taken) {
      asked_ = false;
      next_ = kNever;
      return Verdict::kFine;
    }
    if (asked_) {
      next_ = asked_at_ + kPatience;
      return now >= next_ ? Verdict::kHangs : Verdict::kFine;
    }
    next_ = asked_at_ + kEvery;
    if (now < next_) return Verdict::kFine;
    asked_ = true;
    asked_at_ = now;
    next_ = now + kPatience;
    return Verdict::kAsk;
  }

  // When to call Look again; kNever: nothing is taken.
  TimePoint next() const { return next_; }

 private:
  bool asked_ = false;
  TimePoint asked_at_{};
  TimePoint next_ = kNever;
};

}  // namespace xsched::preempt
