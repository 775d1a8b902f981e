// Commands given to XQueueSubmit wait in host memory; a thread launches them when the queue may run and
// little enough is in flight. The thread exists only while a queue is used in this way.
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
  // Takes `command` (kept alive until it has been launched or dropped). `blocking`: returns when it has been
  // launched.
  XResult Submit(XQueue& queue, const Ref<HwCommand>& command, bool blocking);
  // Returns when all that was submitted before this call has been launched or dropped.
  void WaitLaunched();
  // Returns when `command`, submitted here, has been launched or dropped.
  void WaitLaunched(const HwCommand& command);
  // Forgets what was not launched yet.
  void Drop();
  // Returns when no launch that began before the queue was suspended is under way.
  void WaitBetweenLaunches();
  bool Empty();
  int64_t waiting();
  // Launches the rest and ends the thread. The owner makes sure that the queue may run.
  void Stop();
  void ResetAfterFork();

 private:
  static void* Main(void* queue);
  void Run(XQueue& queue);
  void Launch(XQueue& queue, HwCommand& command);
  // Gives back the commands that have finished, up to number `retired`. Programs need not destroy them.
  void GiveBack(uint64_t retired);

  Mutex mutex_;
  Condition changed_;
  Fifo<HwCommand*> waiting_;   // each holds a reference
  Fifo<HwCommand*> launched_;  // as well; the thread's alone, while there is one
  bool stop_ = false;
  bool started_ = false;
  bool launching_ = false;
  pthread_t thread_{};
  uint64_t taken_in_ = 0;   // under mutex_: commands ever put in …
  uint64_t taken_out_ = 0;  // … and launched or dropped
};

}  // namespace xsched::preempt
