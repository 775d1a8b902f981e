// Work for the thread that calls drivers, and the threads that must leave it to that one. Any call into a
// driver may block for as long as the device works, or for ever.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace xsched::preempt {

class DriverRequests {
 public:
  enum Work : uint32_t {
    kProgress = 1u << 0,  // find out how far the queue is
    kUrgency = 1u << 1,   // tell the driver how urgent it is
    kFinish = 1u << 2,    // its last user has let it go: XQueueTable::Finish
  };

  // Asks for `work` on the queue in slot `index`. False: nobody can do it.
  virtual bool Request(uint32_t index, Work work) = 0;
  // Waits until what has been requested so far is done, but not past `deadline`. For calls of the program
  // that promise an effect.
  virtual void AwaitUntil(TimePoint deadline) = 0;

 protected:
  ~DriverRequests() = default;
};

// While it lives, this thread must not call a driver, or does not want to just now: the end of a queue is
// then left to DriverRequests.
class NoDriverCalls {
 public:
  NoDriverCalls();
  ~NoDriverCalls();
  NoDriverCalls(const NoDriverCalls&) = delete;
  NoDriverCalls& operator=(const NoDriverCalls&) = delete;

  static bool Here();
};

}  // namespace xsched::preempt
