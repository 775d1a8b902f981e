// Levels 2 and 3 of one queue: launched commands do not start, and the running one stops.
//
//   runs --deactivate--> deactivated --interrupt--> interrupted     a queue that is stopped by itself
//   runs --------------- interrupt ---------------> interrupted     a hard stop: of its whole process
//
// A hard stop takes the whole process off the queue's device. So it is made only while no other queue of the
// process has work there, and the next launch on another queue ends it.
//
// If something could not be given back, it stays marked as taken. Apply returns this, and must be called
// again. It also writes the words of the control block by which the client opens and closes device-side
// gates. Thread-safe, except for Begin.
#pragma once

#include "base/mutex.h"
#include "preempt/gates/flow_state.h"
#include "preempt/queue/siblings.h"

namespace xsched::preempt {

class Suspension {
 public:
  struct Start {
    const XHwQueueOps* ops;
    void* hwq;
    const FlowState* queue;
    ProcessState* process;
    Siblings* siblings;
    const XQueue* self;  // for the siblings
  };

  constexpr Suspension() = default;
  void Begin(const Start& start);

  // Applies the queue's state to the device. False: a stopped queue does not run again yet.
  bool Apply();

  enum class Lifted { kNothing, kDone, kNotYet };
  // Ends a hard stop; gates hold the queue as before.
  Lifted LiftHardStop();

  // True if nothing of the queue runs, not even commands that had started.
  bool Stopped() const;
  // True if launched commands do not start.
  bool Deactivated() const;
  bool Interrupted() const;

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  bool ApplyDeactivation() EXCLUDES(mutex_);
  bool ApplyHardStop() EXCLUDES(mutex_);
  bool StopsProcess() const { return start_.ops->interrupt != nullptr && start_.ops->deactivate == nullptr; }
  bool WantsHardStop() const;
  void HardStop() REQUIRES(mutex_);
  bool EndHardStop() REQUIRES(mutex_);

  Start start_{};
  mutable Mutex<LockRank::kSuspension> mutex_;  // held around the HAL's calls
  bool deactivated_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace xsched::preempt
