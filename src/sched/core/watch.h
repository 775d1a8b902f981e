// Watches one queue that others are held for: does it retire anything?
//
// A queue may wait for something that only a held queue can do, in a way that the scheduler cannot see (a
// kernel that spins, a host function, an event of another process). Nothing tells this from a long command.
// So the watch lets go for a window, in which nobody is held, and takes the claim back after it, each time
// for longer:
//
//                    80 ms watched,                  the window's
//                    no progress                     time is over
//      [watched] ------------------> [window open] ---------------> [claim restored]
//          ^                           |    ^                          |    |
//          |         progress          |    |   80 ms watched,         |    |
//          +---------------------------+    |   no progress            |    |
//          |                                +--------------------------+    |
//          +----------------------------------------------------------------+
//
//      The windows of one episode: 10 ms, 20, 40, ... 640. One that would be 1.28 s long stays open until
//      there is progress. While a queue with a better claim has work, its claim holds: the window stands
//      still, and goes on afterwards.
//
// Progress ends the episode and everything is as before it: nothing is learnt that could be wrong later. A
// long command keeps most of its claim meanwhile, and a hidden wait goes on 80 ms after it began, every time.
//
// Only time in which the queue was watched counts: it ran, its process was on the device, it had been asked
// for its progress, and somebody was held (on its device; for long on another one also counts, if whoever
// runs there has no better claim). It adds up while the same queue stays held; it starts anew when all that
// were held have run since, for then each has had its chance to do what this queue waits for.
//
// The scheduler lets go as well when nobody of a device has retired anything for 80 ms (silence.h).
//
// Pure; never calls anybody.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "sched/core/types.h"

namespace xsched::sched {

struct SchedulerConfig;

class Watch {
 public:
  // What one decision means for the queue.
  struct Chance {
    bool released = false;         // it runs on the device, and so does everybody who has no better claim
    bool watchable = false;        // it runs on the device while others are held,
    TimePoint held_since{kNever};  // … one of them without a break since then
  };

  // The queue has retired something, has new work, or makes nobody wait any more: the episode is over.
  void Reset(TimePoint now) {
    *this = Watch{};
    heard_at_ = now;
  }
  // The queue was let run, or its process was put back on the device: it is given time before it is asked.
  void Resumed(TimePoint now) { heard_at_ = now; }
  // The scheduler itself was late by so much: that time is not the queue's.
  void Forgive(Duration late) {
    if (asked_at_ != kNever) asked_at_ += late;
  }

  // Opens or closes a window when it is time. Returns true if an episode begins.
  bool Age(TimePoint now, const SchedulerConfig& config);
  // REQUIRES: Age was called with the same `now`. Sets `ask`: find out the queue's progress. Returns when to
  // call Age and Step again.
  TimePoint Step(TimePoint now, const Chance& chance, const SchedulerConfig& config, bool& ask);

  // Opens a window now. Returns true if an episode begins. REQUIRES: counting().
  bool LetGo(TimePoint now, const SchedulerConfig& config);
  // Is time counted, for it has been asked?
  bool counting() const { return asked_at_ != kNever; }

  // From the first window to the end of the episode.
  bool stalled() const { return windows_ != 0; }
  TimePoint stalled_since() const { return stalled_since_; }  // when it was first asked
  bool window_open() const { return open_; }
  // A second window means that letting go on its own device did not help: what it waits for may be elsewhere.
  bool lends_elsewhere() const { return open_ && windows_ > 1; }

 private:
  TimePoint StallAt(const SchedulerConfig& config) const;
  TimePoint StepWindow(TimePoint now, bool released, bool& ask);
  TimePoint WindowEnd() const;
  void NextAsk(TimePoint now, Duration longest_delay);

  TimePoint heard_at_{};
  TimePoint ask_at_{};          // the next question
  Duration ask_delay_{};        // from that to the one after it
  TimePoint asked_at_{kNever};  // since when time counts; kNever: it does not
  Duration watched_{};          // what counted before that
  TimePoint since_{};           // the first question that counts
  TimePoint stalled_since_{};
  TimePoint window_since_{kNever};  // kNever: the window stands still
  Duration window_left_{};          // … and is open for so long from then on
  int windows_ = 0;                 // of this episode
  bool watching_ = false;
  bool open_ = false;
};

}  // namespace xsched::sched
