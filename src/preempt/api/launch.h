// What a shim calls around each intercepted command. This is the hot path:
//
//   wrapper (shim) -> LaunchScope -> the driver, on the caller's thread -> ~LaunchScope
//
//     xsched::preempt::LaunchScope launch(FindXQueue(...));
//     cl_int result = next->clEnqueueNDRangeKernel(...);
//     launch.Finish(result == CL_SUCCESS);
//
// No lock is held while the driver is called, nothing is allocated, and a queue that is not scheduled costs a
// null check.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "hal/contract.h"
#include "preempt/queue/reentrancy_guard.h"

namespace xsched::preempt {

class XQueue;

// The XQueue over the driver's queue `key`; null when it has none. Lock-free.
XSCHED_PRIVATE XQueue* FindXQueue(XPlatform platform, uint64_t key);

// Should the shim make XQueues by itself (XSCHED_AUTO_XQUEUE), and may it in this process?
XSCHED_PRIVATE bool AutoXQueueEnabled();
// Makes an XQueue with level, launch config and hints from the environment (XSCHED_AUTO_XQUEUE_*).
XSCHED_PRIVATE XResult AutoXQueueCreate(HwQueueHandle hwq);

// A command is about to be enqueued: counts it, wakes the scheduler if the queue was idle, and puts a gate in
// front of it if need be. Blocks only on platforms without gates. Returns the command's number.
XSCHED_PRIVATE uint64_t LaunchBegin(XQueue* queue);
// The driver took it, or not (then it counts as finished).
XSCHED_PRIVATE void LaunchEnd(XQueue* queue, uint64_t number, bool launched);

class LaunchScope {
 public:
  explicit LaunchScope(XQueue* queue) : queue_(queue) {
    if (queue_ != nullptr) number_ = LaunchBegin(queue_);
  }
  ~LaunchScope() {
    if (queue_ != nullptr) LaunchEnd(queue_, number_, false);
  }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

  void Finish(bool launched) {
    if (queue_ == nullptr) return;
    LaunchEnd(queue_, number_, launched);
    queue_ = nullptr;
  }
  // The call blocked until the command, and all before it on an in-order queue, had finished.
  uint64_t number() const { return number_; }

 private:
  XQueue* queue_;
  uint64_t number_ = 0;
};

// Is no thread within a launch on the queue?
XSCHED_PRIVATE bool NoLaunchUnderWay(XQueue* queue);
// The newest command's number, to be passed to RetiredUpTo after a wait that began now.
XSCHED_PRIVATE uint64_t SubmittedNow(XQueue* queue);
// The program's own synchronisation has shown that all commands up to `number` have finished.
XSCHED_PRIVATE void RetiredUpTo(XQueue* queue, uint64_t number);

// Is anybody scheduled against this queue? A wait is worth telling where that is so of either of the two:
// they may be of different devices.
XSCHED_PRIVATE bool TracksDependencies(XQueue* queue);
// Commands enqueued on `waiter` from now on wait until `owner` has finished its command `until`.
XSCHED_PRIVATE void AddDependency(XQueue* waiter, XQueue* owner, uint64_t until);

// The program has let the driver's queue go. What is gated still runs under the scheduler; the XQueue and its
// HwQueue are destroyed when it has drained (at once, if nothing is outstanding).
XSCHED_PRIVATE void DestroyWhenDrained(XPlatform platform, uint64_t key);

// The program is in a call of the driver's that may wait for any of its queues: what has been launched is not
// held meanwhile. For platforms with gates in line, or whose device is stopped from outside. Nests.
class Barrier {
 public:
  Barrier() { ForceAllOpen(true); }
  ~Barrier() { ForceAllOpen(false); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

 private:
  XSCHED_PRIVATE static void ForceAllOpen(bool open);
};

// The program is in a call of the driver's that waits for queues and keeps nothing else waiting: what the
// program has suspended by itself is not held meanwhile, for it may resume only after the call. What a
// scheduler holds stays held. For platforms with gates in line. Nests.
class SuspensionLift {
 public:
  SuspensionLift() { Lift(true); }
  ~SuspensionLift() { Lift(false); }
  SuspensionLift(const SuspensionLift&) = delete;
  SuspensionLift& operator=(const SuspensionLift&) = delete;

 private:
  XSCHED_PRIVATE static void Lift(bool lift);
};

// May a scheduler hold a queue of the process? Lock-free.
XSCHED_PRIVATE bool AnyMayBeHeld();

// Before a call that waits for all that the queues of `context` have been given: waits for that here, where
// it is held as it should be and nothing of the driver's is taken. A Barrier around the call then opens gates
// behind which nothing is left to wait for. REQUIRES: a scheduler may hold a queue of the process. Gives up
// when nothing moves for `patience` although nothing is rightly held: the device may wait for the caller
// itself. False: the call needs a Barrier, for it may wait for what is held and the caller may be more
// urgent. True: needed only where the call keeps other threads waiting.
XSCHED_PRIVATE bool AwaitGiven(uint64_t context, Duration patience);

// The process is about to lose its driver (exit, reset): opens every gate, for good.
XSCHED_PRIVATE void OpenAllGatesForGood();

}  // namespace xsched::preempt
