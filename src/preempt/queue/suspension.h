// Levels 2 and 3 of one queue: what is in the driver's hands does not start, and what runs stops.
//
//   runs --deactivate--> deactivated --interrupt--> interrupted     a queue that is stopped by itself
//   runs --------------- interrupt ---------------> interrupted     a hard stop: of its whole process
//
// A hard stop takes the whole process off the queue's device. So it is made only while the process has
// nothing else at work there, and the next launch on another queue lifts it.
//
// What could not be given back stays marked as taken: Apply says so, and is to be called again. It also
// writes the words of the control block by which the client opens and closes device gates. Thread-safe but
// for Begin.
#pragma once

#include "base/mutex.h"
#include "preempt/gates/queue_state.h"
#include "preempt/queue/siblings.h"

namespace xsched::preempt {

class Suspension {
 public:
  struct Start {
    const XHwQueueOps* ops;
    void* hwq;
    const QueueState* queue;
    ProcessState* process;
    Siblings* siblings;
    const XQueue* self;  // for the siblings
  };

  constexpr Suspension() = default;
  void Begin(const Start& start);

  // Makes the device do what the queue's state says. False: what was stopped does not go on yet.
  bool Apply();

  enum class Lifted { kNothing, kDone, kNotYet };
  // Ends a hard stop; gates hold the queue as before.
  Lifted LiftHardStop();

  // Does nothing of the queue run, not even what had started?
  bool Stopped() const;
  // Is it kept from starting what was launched?
  bool Deactivated() const;
  bool Interrupted() const;

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  bool ApplyDeactivation();
  bool ApplyHardStop();
  bool StopsProcess() const { return start_.ops->interrupt != nullptr && start_.ops->deactivate == nullptr; }
  bool WantsHardStop() const;
  // Both: REQUIRES mutex_.
  void HardStop();
  bool EndHardStop();

  Start start_{};
  mutable Mutex mutex_;  // guards what follows; held around the driver's calls
  bool deactivated_ = false;
  bool interrupted_ = false;
};

}  // namespace xsched::preempt
