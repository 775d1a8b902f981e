// Requests to the thread that calls drivers, from threads that must not call one. Any call into a driver may
// block for as long as the device works, or forever.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace xsched::preempt {

class DriverRequests {
 public:
  enum Work : uint32_t {
    kProgress = 1u << 0,  // find out the queue's progress
    kUrgency = 1u << 1,   // set its urgency in the driver
    kFinish = 1u << 2,    // its last user has released it: XQueueTable::Finish
    kGates = 1u << 3,     // open its gates, on a thread that opens no other queue's meanwhile
  };

  // Requests `work` on the queue in slot `index`. False: there is no thread for it.
  virtual bool Request(uint32_t index, Work work) = 0;
  // Waits until all requests so far are done, at most until `deadline`. For calls of the program that promise
  // an effect.
  virtual void AwaitUntil(TimePoint deadline) = 0;

 protected:
  ~DriverRequests() = default;
};

// While this object exists, its thread must not call a driver. The end of a queue is then left to
// DriverRequests.
class NoDriverCalls {
 public:
  NoDriverCalls();
  ~NoDriverCalls();
  NoDriverCalls(const NoDriverCalls&) = delete;
  NoDriverCalls& operator=(const NoDriverCalls&) = delete;

  static bool Here();
};

}  // namespace xsched::preempt
