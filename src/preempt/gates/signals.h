// Whom a queue wakes. Implemented by the agent, and by tests.
#pragma once

#include <cstdint>

namespace xsched::preempt {

class Signals {
 public:
  // Tells the scheduler to look at queue `index`. Lock-free, async-signal-safe.
  virtual void RingScheduler(uint32_t index) = 0;
  // Tells the agent's thread to look at the queues. Lock-free, async-signal-safe.
  virtual void Wake() = 0;
  // A launch has found its queue scheduled: from now on a server that hangs must be found out. Lock-free.
  virtual void SomethingIsTaken() = 0;
  // Something could not be given back: the agent's thread tries until it is. Takes locks.
  virtual void GiveBackLater() = 0;

 protected:
  ~Signals() = default;
};

}  // namespace xsched::preempt
