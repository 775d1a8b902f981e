// The work that the queues of one context or device have up to now. A thread waits outside the driver, before
// it makes a call during which every gate must be open: until all of that work has retired, if the call waits
// for it, or only while some of it is held, if the call may wait for it.
//
// It has only handles and numbers: a queue that another thread destroys meanwhile is not awaited any more.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "preempt/queue/awaited_queues.h"
#include "xsched/hint.h"
#include "xsched/types.h"

namespace xsched::preempt {

class ProcessLevel;
class XQueueTable;

class GivenWork {
 public:
  // How time passes while a thread waits.
  struct Time {
    Clock now = &MonotonicClock::now;
    void (*nap)(Duration) = &SleepFor;
  };

  GivenWork(XQueueTable& queues, const AwaitedQueues& awaited, const Time& time);
  // Returns true when all of it has retired. Gives up if there is no progress for `patience`, although
  // nothing is held or the caller may be more urgent than the held queues. If no scheduler can hold any of
  // these queues, it gives up earlier.
  bool Await(Duration patience, ProcessLevel& process_level);
  // Returns when none of it is held. Gives up after `patience` if the caller may be more urgent than the held
  // queues.
  void AwaitNotHeld(Duration patience);
  // True if some of these queues are more urgent than others. Then the caller may work for one of
  // these.
  bool of_several_classes() const { return least_ < most_; }

 private:
  static constexpr int kMaxQueues = 256;  // the driver waits for further ones
  struct Newest {
    XQueueHandle queue;
    uint64_t number;
    uint64_t seen_retired;
  };
  // kHeldForCaller: the caller may be more urgent.
  enum class Progress { kDone, kHeld, kHeldForCaller, kMoved, kNone };

  Progress Look(Newest& newest) const;
  // Looks at all queues once, and forgets those that are done. `held_only`: so are those that are not held.
  // Returns true if one has moved, or is rightly held.
  bool LookAtAll(bool held_only);
  Duration PatienceNow(Duration patience, ProcessLevel& process_level) const;

  XQueueTable& queues_;
  const Time time_;
  int count_ = 0;
  Priority least_ = PRIORITY_MAX;  // of these queues
  Priority most_ = PRIORITY_NO_EXECUTE;
  bool any_may_be_held_ = false;  // one of them
  Newest newest_[kMaxQueues];
};

}  // namespace xsched::preempt
