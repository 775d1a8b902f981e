// What the queues of one context have been given up to now, to be waited for outside the driver: by a thread
// that is about to make a call which waits for all of it, and which must open every gate meanwhile.
//
// Handles and numbers only: a queue that another thread destroys meanwhile is not waited for any more.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "xsched/hint.h"
#include "xsched/types.h"

namespace xsched::preempt {

class ProcessLevel;
class XQueueTable;

class GivenWork {
 public:
  GivenWork(XQueueTable& queues, uint64_t context);
  // Returns true when all has retired. Gives up when nothing moves for `patience`, although nothing is held
  // or the caller may be more urgent than what is.
  bool Await(Duration patience, ProcessLevel& process_level);
  // Are some of the context's queues more urgent than others? Then the caller may work for one of these.
  bool of_several_classes() const { return least_ != most_; }

 private:
  static constexpr int kMaxQueues = 256;  // of more, the driver is left to wait
  struct Newest {
    XQueueHandle queue;
    uint64_t number;
    uint64_t seen_retired;
  };
  enum class Progress { kDone, kHeld, kMoved, kNone };

  Progress Look(Newest& newest) const;

  XQueueTable& queues_;
  int count_ = 0;
  Priority least_ = PRIORITY_MAX;  // of the context's queues
  Priority most_ = PRIORITY_NO_EXECUTE;
  Newest newest_[kMaxQueues];
};

}  // namespace xsched::preempt
