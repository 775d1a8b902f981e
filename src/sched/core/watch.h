// Watches whether a queue for which others are held retires anything.
//
// A queue may wait for something that only a held queue can do, in a way that the scheduler cannot see (a
// kernel that spins, a host function, an event of another process). This looks the same as a long command. So
// the watch lets go for a window, in which nothing is held, and restores the claim afterwards. Each window is
// longer than the one before:
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
//      there is progress. While a queue with a better claim has work, its claim holds: the window is
//      interrupted, and continues afterwards.
//
// Progress ends the episode, and everything is as before: nothing is learned that could be wrong later. A
// long command keeps most of its claim, and a hidden wait ends 80 ms after it began, every time.
//
// Only time in which the queue was watched counts. It is watched while it runs, its process is on the device,
// it was asked for its progress, and another queue is held, or the process of another queue was off the
// device for 10 ms. (A queue of another device that is held for long counts as well, if no queue that runs
// there has a better claim.) The time adds up while the same queue stays held. It starts anew when all held
// queues have run since, because then each has had its chance to do what this queue waits for.
//
// The scheduler also lets go when no queue of a device has retired anything for 80 ms (silence.h).
//
// Pure; it has no callbacks.
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
    bool released = false;         // it runs in a window: all queues without a better claim run as well
    bool watchable = false;        // it runs on the device while others are held
    TimePoint held_since{kNever};  // if watchable: since when one of them is held without a break
    Duration ask_after{};          // if watchable: it is asked when it has reported nothing for so long
  };

  // The queue has retired something, has new work, or does not make others wait any more: the episode is
  // over.
  void Reset(TimePoint now) {
    *this = Watch{};
    heard_at_ = now;
  }
  // The queue runs again, or its process was put back on the device: it gets some time before it is asked.
  void Resumed(TimePoint now) { heard_at_ = now; }
  // The scheduler itself was late by this time, which does not count.
  void Forgive(Duration late) {
    if (asked_at_ != kNever) asked_at_ += late;
  }

  // Opens or closes a window when it is time. Returns true if an episode begins.
  bool Age(TimePoint now, const SchedulerConfig& config);
  struct Times {
    TimePoint ask_at = kNever;     // only to ask
    TimePoint decide_at = kNever;  // for anything else
  };
  // REQUIRES: Age was called with the same `now`. Sets `ask` if the queue's progress must be queried. Returns
  // when to call Age and Step again.
  Times Step(TimePoint now, const Chance& chance, const SchedulerConfig& config, bool& ask);

  // Opens a window now. Returns true if an episode begins. REQUIRES: counting().
  bool LetGo(TimePoint now, const SchedulerConfig& config);
  // True if Age and Step do nothing while the queue is not watchable.
  bool rests() const { return !watching_ && !open_ && asked_at_ == kNever; }
  // True if time counts, because the queue was asked.
  bool counting() const { return asked_at_ != kNever; }

  // From the first window to the end of the episode.
  bool stalled() const { return windows_ != 0; }
  TimePoint stalled_since() const { return stalled_since_; }  // when it was first asked in this episode
  bool window_open() const { return open_; }
  // From the second window on: letting go on its own device did not help, so the window acts on all devices.
  bool window_is_wide() const { return open_ && windows_ > 1; }

 private:
  TimePoint StallAt(const SchedulerConfig& config) const;
  TimePoint StepWindow(TimePoint now, bool released, bool& ask);
  TimePoint WindowEnd() const;
  void NextAsk(TimePoint now, Duration longest_delay);

  TimePoint heard_at_{};
  TimePoint ask_at_{};          // the time of the next query
  Duration ask_delay_{};        // from that to the query after it
  TimePoint asked_at_{kNever};  // since when time counts; kNever: it does not
  Duration watched_{};          // the time that counted before asked_at_
  TimePoint since_{};           // the first query that counts
  TimePoint stalled_since_{};
  TimePoint window_since_{kNever};  // kNever: the window is interrupted
  Duration window_left_{};          // how long it stays open, from window_since_ on
  int windows_ = 0;                 // the number of windows in this episode
  bool watching_ = false;
  bool open_ = false;
};

}  // namespace xsched::sched
