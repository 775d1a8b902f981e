// The threads that open host gates where the driver may run commands or code of the program in that call.
// Each opens one queue's gates at a time, and no other thread does so then. So a call that never returns
// keeps only its own queue's gates closed, and keeps one thread.
//
// A thread is started when all are at work. Nothing waits for them. Thread-safe.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/thread.h"
#include "ipc/control_block.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {

class GateOpeners {
 public:
  constexpr GateOpeners(XQueueTable& queues, ThreadStart start_thread)
      : queues_(queues), start_thread_(start_thread) {}

  // Opens the gates of the queue in slot `index` that may be opened. False: there is no thread for it.
  bool Request(uint32_t index) EXCLUDES(mutex_);
  void ResetAfterFork();

  // For tests. True if all of so many threads wait for a request, and there is none.
  bool AtRest(uint32_t threads) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return requests_ == 0 && idle_ == threads;
  }

 private:
  enum class Work : uint8_t {
    kNone,
    kRequested,
    kUnderWay,  // a thread opens the queue's gates, or will try again
    kRequestedUnderWay,
  };

  static void* Main(void* self);
  // Takes the next request, when there is one.
  uint32_t AwaitNext() EXCLUDES(mutex_);
  // False: the driver has not opened a gate.
  bool OpenGatesOf(uint32_t index);
  // False: it has been requested again since the last call of the driver began, so there is more to open.
  bool Finish(uint32_t index) EXCLUDES(mutex_);

  XQueueTable& queues_;
  const ThreadStart start_thread_;
  Mutex<LockRank::kGateOpeners> mutex_;
  Condition changed_;
  Work work_[ipc::kMaxQueues] GUARDED_BY(mutex_) = {};  // by slot
  uint32_t requests_ GUARDED_BY(mutex_) = 0;            // that no thread has taken
  uint32_t idle_ GUARDED_BY(mutex_) = 0;                // threads
};

}  // namespace xsched::preempt
