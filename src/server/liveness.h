// Can a client's process run, as far as its signs of life show? Pure: signs and time in, an answer out.
//
//                     the kernel says that it is stopped
//      running ----------------------------------------------> stopped
//       ^   |                                                     |
//       |   | it leaves unread what it was asked, for 60 ms       | continued
//       |   v                                                     |
//       |  silent (it hangs, or its control group is frozen)      |
//       +---+-----------------------------------------------------+
//         it is heard from
//
// Others run within 100 ms of a process's stop or hang. A stop is seen within kPresumedAlive and the time
// between two checks. A process that hangs or is frozen (which the kernel does not show as stopped) is asked
// within the same time, and found silent after kAnswerWithin: 100 ms at most, and mostly less, because a
// scheduler that others wait for asks after some hundred microseconds.
//
// On a loaded machine an agent may be late without hanging. This costs little: others run beside its queues
// until it is heard from, some milliseconds later.
#pragma once

#include "base/clock.h"

namespace xsched::server {

class Liveness {
 public:
  // A process that has been heard from for less than this is running.
  static constexpr Duration kPresumedAlive = std::chrono::milliseconds(20);
  static constexpr Duration kAnswerWithin = std::chrono::milliseconds(60);

  explicit Liveness(TimePoint now) : heard_at_(now) {}

  bool stopped() const { return stopped_; }
  bool silent() const { return silent_; }
  bool running() const { return !stopped_ && !silent_; }

  bool IsPresumedAlive(TimePoint now) const { return now < heard_at_ + kPresumedAlive; }
  // It has rung its doorbell, or written. True: it is running again.
  bool HeardFrom(TimePoint now);

  // Has it been sent something since it was last heard from?
  bool is_asked() const { return asked_at_ != kNever; }
  void Asked(TimePoint now) { asked_at_ = now; }

  struct Signs {
    bool stopped;         // by the kernel's word
    bool has_read_all;    // of what it was sent
    bool has_progressed;  // its queues have new commands since the last check
  };
  struct Verdict {
    bool changed;                 // running() did
    bool must_ask;                // send it something
    TimePoint check_at = kNever;  // when it will have been silent for too long
  };
  Verdict Check(const Signs& signs, TimePoint now);

 private:
  bool stopped_ = false;
  bool silent_ = false;
  TimePoint heard_at_;
  TimePoint asked_at_ = kNever;  // since when it has left something unread
};

}  // namespace xsched::server
