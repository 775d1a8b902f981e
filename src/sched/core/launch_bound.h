// Learns whether a queue is bound by launches: its program needs longer to launch the commands than the
// device needs to execute them, as many programs of PyTorch do that use no graphs. Such a queue leaves the
// device idle for most of the time in which it has work. If others are held for it, that time is lost.
//
// Each query of the scheduler is a sample: was the device idle, although the program had not noticed? If it
// was in a third of the samples, others may run for a while. Then they are held again, and the next samples
// decide whether they may run for twice as long. If no command follows soon, the program has finished what it
// had to do, and this was no gap: then it is no sample.
//
//                    bound                          time is over
//      [sampling] ----------> [leaves its gaps] ---------------------+
//          ^  |  not bound           ^                               |
//          |  v                      |  bound: twice as long         v
//          +--+                      +------------------------- [sampling] ---> not bound: as at first
//
// Pure.
#pragma once

#include "base/clock.h"

namespace xsched::sched {

class LaunchBound {
 public:
  // The scheduler asks for the queue's progress, because others are held. True: this changes LeavesGaps.
  bool Asked(TimePoint now);
  // That found the device idle: a sample, if Resumed follows with `soon`.
  void FoundIdle();
  // The queue has work again, after a pause that was `soon` over or not. True: this changes LeavesGaps.
  bool Resumed(bool soon, TimePoint now);

  // As far as is known, it is.
  bool is_bound() const { return period_ != Duration::zero(); }
  // Others may run in its gaps, until().
  bool LeavesGaps(TimePoint now) const { return now < until_; }
  TimePoint until() const { return until_; }

 private:
  bool Count(bool idle, TimePoint now);

  bool asked_ = false;       // there is no answer yet
  bool found_idle_ = false;  // a sample, if a command follows soon
  int samples_ = 0;
  int idle_ = 0;
  Duration period_{};  // how long the others may run, or ran the last time; 0: it is not bound by launches
  TimePoint until_{};
};

}  // namespace xsched::sched
