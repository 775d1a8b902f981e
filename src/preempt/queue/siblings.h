// What a queue needs from the other queues of its process. Implemented by their table, and by tests.
#pragma once

#include <cstdint>

namespace xsched::preempt {

class XQueue;

class Siblings {
 public:
  // True if no other queue of the process has work on the queue's device, or on another part of it.
  virtual bool OthersAreQuiet(const XQueue& queue) = 0;
  // `queue` is about to launch, or has work: ends hard stops of its device and of all parts of it.
  virtual void LiftHardStops(const XQueue& queue) = 0;
  // Keeps the queue from being destroyed until Unpin. False: it is being destroyed.
  virtual bool TryPin(XQueue& queue) = 0;
  virtual void Unpin(XQueue& queue) = 0;
  // Ends the queue in slot `index`, whose last user has released it. Calls the driver, which may block.
  virtual void Finish(uint32_t index) = 0;

 protected:
  ~Siblings() = default;
};

}  // namespace xsched::preempt
