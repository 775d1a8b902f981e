// Watches one device on which XSched has taken something away from a queue with work: does any queue of the
// device retire anything?
//
// A queue's own watch (watch.h) counts while this queue runs. Several queues that run by turns may each be
// watched for too short a time, and yet the device does nothing. So the time is counted for the device as
// well. It begins with the last progress of any queue there, or when something was taken: a queue was held,
// or its process was put off the device. Nothing else restarts it: not other hints, not inherited urgency,
// not another turn, not another queue that comes.
//
// Pure.
#pragma once

#include "base/clock.h"

namespace xsched::sched {

struct SchedulerConfig;

class Silence {
 public:
  // A queue of the device has made progress, at that time for sure, perhaps later.
  void Break(TimePoint at, TimePoint now);
  // The scheduler itself was late by so much: that time does not count.
  void Forgive(Duration late);
  // Was anything `taken` at the last decision, and is any queue that runs asked for its progress?
  void Count(bool taken, bool asked, TimePoint now);

  // Since when the device retires nothing; kNever: nothing is taken.
  TimePoint since() const { return since_; }
  // When the queues that run are asked for their progress, although no queue is held: processes that are off
  // the device wait for their turns.
  TimePoint AskAt(const SchedulerConfig& config) const;
  // When the watchdog lets go.
  TimePoint Until(const SchedulerConfig& config) const;

 private:
  TimePoint since_ = kNever;
  Duration asked_{};                // since then, up to asked_since_
  TimePoint asked_since_ = kNever;  // kNever: no queue is asked
};

}  // namespace xsched::sched
