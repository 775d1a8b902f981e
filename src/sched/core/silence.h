// Watches whether any queue of a device retires anything while XSched has taken something from a queue with
// work there.
//
// A queue's own watch (watch.h) counts while that queue runs. If several queues run alternately, each may be
// watched for too short a time, although the device makes no progress. So the time is also counted for the
// device. It begins with the last progress of any queue there, or when something was taken: a queue was held,
// or its process was put off the device. Nothing else restarts it: not other hints, inherited urgency,
// another turn or another queue.
//
// Pure.
#pragma once

#include "base/clock.h"

namespace xsched::sched {

struct SchedulerConfig;

class Silence {
 public:
  // A queue of the device has made progress at `at` or later.
  void Break(TimePoint at, TimePoint now);
  // The scheduler itself was late by this time, which does not count.
  void Forgive(Duration late);
  // Called after each decision. `taken`: something is taken from a queue with work. `asked`: a running queue
  // is asked for its progress.
  void Count(bool taken, bool asked, TimePoint now);

  // When the watchdog lets go.
  TimePoint Until(const SchedulerConfig& config) const;

 private:
  TimePoint since_ = kNever;        // when the device last retired something; kNever: nothing is taken
  Duration asked_{};                // since then, up to asked_since_
  TimePoint asked_since_ = kNever;  // kNever: no queue is asked
};

}  // namespace xsched::sched
