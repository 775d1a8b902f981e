// The functions that a shim calls around each intercepted command. This is the hot path:
//
//   wrapper (shim) -> LaunchScope -> the driver, on the caller's thread -> ~LaunchScope
//
//     xsched::preempt::LaunchScope launch(FindXQueue(...));
//     Status result = driver->LaunchKernel(...);
//     launch.Finish(result == kSuccess);
//
// No lock is held while the driver is called, nothing is allocated, and a queue that is not scheduled costs a
// null check.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/no_cancellation.h"
#include "hal/contract.h"
#include "preempt/queue/awaited_queues.h"
#include "preempt/queue/hw_queue.h"
#include "preempt/queue/reentrancy_guard.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

// The queue that this thread found last: most programs launch on the same one again and again.
XSCHED_PRIVATE extern constinit thread_local XQueue* last_found __attribute__((tls_model("initial-exec")));
XSCHED_PRIVATE XQueue* LookUpXQueue(uint64_t name);

// The XQueue over the driver's queue `key`; null when it has none. Lock-free.
[[gnu::always_inline]] inline XQueue* FindXQueue(XPlatform platform, uint64_t key) {
  const uint64_t name = MapKey(platform, key);
  XQueue* const last = last_found;
  return last != nullptr && last->state().name() == name ? last : LookUpXQueue(name);
}

// True if the shim makes XQueues by itself (XSCHED_AUTO_XQUEUE), and may do so in this process.
XSCHED_PRIVATE bool AutoXQueueEnabled();
// Makes an XQueue with level, launch config and hints from the environment (XSCHED_AUTO_XQUEUE_*).
XSCHED_PRIVATE XResult AutoXQueueCreate(HwQueueHandle hwq);

// A command is about to be enqueued. Counts it, wakes the scheduler if the queue was idle, and puts a gate in
// front of it if necessary. Blocks only on platforms without gates. Returns the command's number.
[[gnu::always_inline]] inline uint64_t LaunchBegin(XQueue* queue) { return queue->LaunchBegin(); }
// The launch has returned. If the driver refused it, it counts as finished.
[[gnu::always_inline]] inline void LaunchEnd(XQueue* queue, uint64_t number, bool launched) {
  queue->LaunchEnd(number, launched);
}

// For platforms whose held queues make the launching thread wait: a command that takes no time of the device,
// such as the freeing of memory in order. It is counted, and never waits: the thread may have locks that
// threads of more urgent queues need.
struct Passing {};

class LaunchScope {
 public:
  [[gnu::always_inline]] explicit LaunchScope(XQueue* queue) : queue_(queue) {
    if (queue_ != nullptr) number_ = LaunchBegin(queue_);
  }
  LaunchScope(XQueue* queue, Passing) : queue_(queue) {
    if (queue_ != nullptr) number_ = queue_->LaunchBeginPassing();
  }
  [[gnu::always_inline]] ~LaunchScope() {
    if (queue_ != nullptr) LaunchEnd(queue_, number_, false);
  }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

  [[gnu::always_inline]] void Finish(bool launched) {
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

// True if no thread is in a launch on the queue.
XSCHED_PRIVATE bool NoLaunchUnderWay(XQueue* queue);
// The newest command's number, to be passed to RetiredUpTo after a wait that began now.
XSCHED_PRIVATE uint64_t SubmittedNow(XQueue* queue);
// True if the driver had all commands before `number` when that launch began. Otherwise it may get an earlier
// number after this one, from another thread. `issued`: the queue's count just before the launch began. What
// was issued until then has lower numbers, and so the count says that these are all of them.
inline bool HasAllBefore(uint64_t issued, uint64_t number) { return issued + 1 == number; }
// The program's own synchronization has shown that all commands up to `number` have finished.
XSCHED_PRIVATE void RetiredUpTo(XQueue* queue, uint64_t number);

// True if other queues are scheduled against this queue.
inline bool TracksDependencies(const XQueue* queue) { return queue->state().raw_flags() != 0; }
// True if a wait of `waiter` for `owner` is to be reported. Other queues may be scheduled against only one of
// them, because they may be on different devices.
inline bool TracksDependency(const XQueue* waiter, const XQueue* owner) {
  return waiter != owner && (TracksDependencies(waiter) || TracksDependencies(owner));
}
// False: no wait of any queue for another is to be reported. Lock-free.
XSCHED_PRIVATE bool AnyTracksDependencies();
// Commands enqueued on `waiter` from now on wait until `owner` has finished its command `until`.
XSCHED_PRIVATE void AddDependency(XQueue* waiter, XQueue* owner, uint64_t until);

// The program has set the priority of the queue in the driver. What the hints make of it is set there soon.
XSCHED_PRIVATE void DriverPriorityChanged(XQueue* queue);

// The program has released the driver's queue. What is unfinished still runs under the scheduler. The XQueue
// and its HwQueue are destroyed when the queue has drained (at once, if nobody is scheduled against it and no
// gate is closed).
XSCHED_PRIVATE void DestroyWhenDrained(XPlatform platform, uint64_t key);
// The key is another queue's now, or that of one which the program uses again after its release.
XSCHED_PRIVATE void ForgetQueue(XPlatform platform, uint64_t key);

// A context of the driver is about to be destroyed, and has been destroyed, or was not. Its queues
// have been released (DestroyWhenDrained). Those that still drain get no more reports from a context that is
// gone.
XSCHED_PRIVATE void ContextGoes(uint64_t context);
XSCHED_PRIVATE void ContextGone(uint64_t context);
XSCHED_PRIVATE void ContextStays(uint64_t context);

// The scope of a call of the driver that may wait for any queue of the program. Launched commands are not
// held meanwhile. For platforms with device-side gates, or whose device is stopped from outside. Nests.
class Barrier {
 public:
  Barrier() { ForceAllOpen(true); }
  ~Barrier() { ForceAllOpen(false); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

 private:
  NoCancellation to_its_end_;
  XSCHED_PRIVATE static void ForceAllOpen(bool open);
};

// The scope of a call of the driver that waits for queues and does not make other threads wait. Queues that
// the program has suspended run meanwhile, because the program may resume them only after the call. Queues
// that a scheduler holds stay held. For platforms with device-side gates. Nests.
class SuspensionLift {
 public:
  SuspensionLift() { Lift(true); }
  ~SuspensionLift() { Lift(false); }
  SuspensionLift(const SuspensionLift&) = delete;
  SuspensionLift& operator=(const SuspensionLift&) = delete;

 private:
  XSCHED_PRIVATE static void Lift(bool lift);
};

// True if a scheduler may hold a queue of the process. Lock-free.
XSCHED_PRIVATE bool AnyMayBeHeld();

// True if a launch is in progress on a queue that a scheduler may hold. It may wait inside the driver for
// room.
XSCHED_PRIVATE bool AnyLaunchMayWait();

// Call it before a call of the driver that waits for all work of some queues. Waits for this work outside the
// driver, where queues may be held and no lock of the driver is held. After that, a Barrier around the call
// opens gates behind which there is nothing left to wait for. REQUIRES: a scheduler may hold a queue of the
// process. Gives up if there is no progress for `patience` although no queue is rightly held, because the
// device may wait for the caller.
XSCHED_PRIVATE void AwaitGiven(const AwaitedQueues& queues, Duration patience);

// True if some of these queues are more urgent than others. Then a call that waits for them needs a Barrier
// even if it makes no other thread wait: a queue that is held may be less urgent than the caller.
XSCHED_PRIVATE bool OfSeveralClasses(const AwaitedQueues& queues);

// Call it before a call of the driver that may wait for such work, or may not. Waits only while some of it is
// held, so the call is not delayed beside work that runs. Gives up after `patience` if the caller may be more
// urgent than the held queues.
XSCHED_PRIVATE void AwaitNotHeld(const AwaitedQueues& queues, Duration patience);

}  // namespace xsched::preempt
