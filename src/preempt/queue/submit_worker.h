// Commands of XQueueSubmit wait in host memory. A worker thread launches them while few enough are in flight
// and the program has not suspended the queue, as any other thread of the program launches: what a scheduler
// holds, it holds there. The thread exists only for queues that are used in this way.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/fifo.h"
#include "base/mutex.h"
#include "preempt/queue/hw_queue.h"

namespace xsched::preempt {

class XQueue;

class SubmitWorker {
 public:
  // For the slot's next queue, whose commands are in `commands`. REQUIRES: the thread does not run.
  void Begin(HwCommands& commands) { commands_ = &commands; }

  // Takes `command`, and keeps it alive until it has been launched or dropped. `blocking`: returns after its
  // launch.
  XResult Submit(XQueue& queue, const Ref<HwCommand>& command, bool blocking);
  // Returns when all that was submitted before this call has been launched or dropped.
  void WaitLaunched();
  // Returns when `command`, submitted here, has been launched or dropped.
  void WaitLaunched(const HwCommand& command);
  // Drops the commands that were not launched yet.
  void Drop();
  // Waits until all launches that began before the queue was suspended have returned.
  void WaitBetweenLaunches();
  bool Empty();
  // True on the worker's own thread.
  bool IsThisThread();
  int64_t waiting();
  // Launches the remaining commands and ends the thread. REQUIRES: the queue may run.
  void Stop();
  // True on the worker's own thread, which cannot wait for its own end: it launches the remaining commands,
  // finishes the queue, and ends. After the queue's last user has released it.
  bool FinishesQueue();
  void ResetAfterFork();

 private:
  static void* Main(void* queue);
  void Run(XQueue& queue);
  // True: the caller finishes the queue.
  bool LeaveThread();
  // Returns when the launch that has begun may go to the driver: a suspension from now on waits for it.
  void BeginInDriver(XQueue& queue, uint64_t number) EXCLUDES(mutex_);
  void Launch(XQueue& queue, HwCommand& command, uint64_t number);
  // Forgets what waits, and returns it with its references.
  Fifo<HwCommand*> TakeToDrop() EXCLUDES(mutex_);
  // Releases the finished commands, up to number `retired`. Programs need not destroy them.
  void GiveBack(uint64_t retired);

  HwCommands* commands_ = nullptr;
  Fifo<HwCommand*> launched_;  // each holds a reference; the thread's alone, while there is one

  Mutex<LockRank::kSubmitWorker> mutex_;
  Condition changed_;
  Fifo<HwCommand*> waiting_ GUARDED_BY(mutex_);  // each holds a reference
  bool stop_ GUARDED_BY(mutex_) = false;
  bool finishes_queue_ GUARDED_BY(mutex_) = false;
  bool started_ GUARDED_BY(mutex_) = false;
  bool launching_ GUARDED_BY(mutex_) = false;  // a command is in the driver's hands
  pthread_t thread_ GUARDED_BY(mutex_){};
  uint64_t taken_in_ GUARDED_BY(mutex_) = 0;   // commands ever put in …
  uint64_t taken_out_ GUARDED_BY(mutex_) = 0;  // … and launched or dropped
};

}  // namespace xsched::preempt
