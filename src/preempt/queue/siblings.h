// What a queue needs of the other queues of its process. Implemented by the table of them, and by tests.
#pragma once

namespace xsched::preempt {

class XQueue;

class Siblings {
 public:
  // Has the process nothing else at work on the queue's device?
  virtual bool OthersAreQuiet(const XQueue& queue) = 0;
  // `queue` is about to launch, or has work: nothing may stop its device.
  virtual void LiftHardStops(const XQueue& queue) = 0;
  // Keeps the queue from being destroyed until Unpin. False: it is on its way.
  virtual bool TryPin(XQueue& queue) = 0;
  virtual void Unpin(XQueue& queue) = 0;

 protected:
  ~Siblings() = default;
};

}  // namespace xsched::preempt
