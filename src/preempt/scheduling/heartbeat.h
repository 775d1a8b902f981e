// Does the server still live? Asked only while something is taken from this process: a server that hangs then
// would keep it for good. Pure: time comes in, what to do comes out.
//
// A hang is noticed kEvery + kPatience after the server's last sign of life at the latest, so that a held
// queue runs within 250 ms of it.
#pragma once

#include "base/clock.h"

namespace xsched::preempt {

class Heartbeat {
 public:
  static constexpr Duration kEvery = std::chrono::milliseconds(60);
  static constexpr Duration kPatience = std::chrono::milliseconds(170);

  enum class Verdict { kFine, kAsk, kHangs };

  // A connection begins, or anything has come from the server.
  void Heard() { asked_ = false; }

  // To be called when `next` has come, or earlier, and after all that has arrived was heard: if this process
  // has not run for a while, the answer is there already. kAsk: send a ping now.
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

  // When to look again; kNever: nothing is taken.
  TimePoint next() const { return next_; }

 private:
  bool asked_ = false;
  TimePoint asked_at_{};
  TimePoint next_ = kNever;
};

}  // namespace xsched::preempt
