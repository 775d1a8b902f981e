// The notifications that a queue sends. Implemented by the agent, and by tests.
#pragma once

#include <cstdint>

namespace xsched::preempt {

class Signals {
 public:
  // Notifies the scheduler of queue `index`. Lock-free, async-signal-safe.
  virtual void RingScheduler(uint32_t index) = 0;
  // Wakes the agent's thread, so that it attends to the queues. Lock-free, async-signal-safe.
  virtual void Wake() = 0;
  // A launch has found its queue scheduled. From now on the agent must notice if the server hangs. Lock-free.
  virtual void SomethingIsTaken() = 0;
  // Something could not be given back: the agent's thread tries again until it succeeds. False: it does not
  // run, and cannot be started. Takes locks.
  virtual bool GiveBackLater() = 0;

 protected:
  ~Signals() = default;
};

}  // namespace xsched::preempt
