// Decides by its signs of life whether a client's process can run. Pure: signs and time in, an answer out.
//
//                     the kernel says that it is stopped
//      running ----------------------------------------------> stopped
//       ^   |                                                     |
//       |   | it does not read its messages for 60 ms             | continued
//       |   v                                                     |
//       |  silent (it hangs, or its control group is frozen)      |
//       +---+-----------------------------------------------------+
//         it gives a sign of life
//
// After a process stops or hangs, others run within 100 ms. A stop is noticed within kPresumedAlive and the
// time between two checks. The kernel does not report a hanging or frozen process as stopped. Such a process
// is sent a message within the same time, and counts as silent after kAnswerWithin. That is 100 ms at most.
// It is mostly less, because the scheduler queries progress after some hundred microseconds if others wait.
//
// On a loaded machine an agent may be late although it does not hang. This costs little: others run beside
// its queues until it answers, some milliseconds later.
#pragma once

#include "base/clock.h"

namespace xsched::server {

class Liveness {
 public:
  // A process that gave a sign of life within this time is running.
  static constexpr Duration kPresumedAlive = std::chrono::milliseconds(20);
  static constexpr Duration kAnswerWithin = std::chrono::milliseconds(60);

  explicit Liveness(TimePoint now) : heard_at_(now) {}

  bool stopped() const { return stopped_; }
  bool silent() const { return silent_; }
  bool running() const { return !stopped_ && !silent_; }

  bool IsPresumedAlive(TimePoint now) const { return now < heard_at_ + kPresumedAlive; }
  // It has rung its doorbell, or sent something. True: it is running again.
  bool HeardFrom(TimePoint now);

  // True if it was sent something since its last sign of life.
  bool is_asked() const { return asked_at_ != kNever; }
  void Asked(TimePoint now) { asked_at_ = now; }

  struct Signs {
    bool stopped;         // as the kernel reports
    bool has_read_all;    // it has read everything that it was sent
    bool has_progressed;  // its queues have new commands since the last check
  };
  struct Verdict {
    bool changed;                 // running() has changed
    bool must_ask;                // send it something that it must read
    TimePoint check_at = kNever;  // when it counts as silent if it does not answer
  };
  Verdict Check(const Signs& signs, TimePoint now);

 private:
  bool stopped_ = false;
  bool silent_ = false;
  TimePoint heard_at_;
  TimePoint asked_at_ = kNever;  // since when it has left something unread
};

}  // namespace xsched::server
