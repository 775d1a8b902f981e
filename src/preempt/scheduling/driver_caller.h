// The thread that asks the driver. Any call into a driver may block for as long as the device works, or for
// ever: so what gives back (the agent) never makes one, and leaves them to this thread. Nothing waits for it;
// when it hangs, queues are asked no more, and the scheduler goes by what devices report by themselves.
//
// One per process, started when it is first needed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "ipc/control_block.h"

namespace xsched::preempt {

class XQueue;

class DriverCaller {
 public:
  enum Work : uint32_t {
    kProgress = 1u << 0,  // find out how far the queue is
    kUrgency = 1u << 1,   // tell the driver how urgent it is
    kFinish = 1u << 2,    // its last user has let it go: XQueueTable::Finish
  };

  static DriverCaller& Get();

  // Asks for `work` on the queue. False: there is no such thread, and none can be started.
  bool Request(const XQueue& queue, Work work);
  // Waits until what has been requested so far is done, but not past `deadline`. For calls of the program
  // that promise an effect.
  void AwaitUntil(TimePoint deadline);

  // A thread that must not call a driver, or does not want to just now: the end of a queue is left to this
  // class.
  class Forbidden {
   public:
    Forbidden();
    ~Forbidden();
    Forbidden(const Forbidden&) = delete;
    Forbidden& operator=(const Forbidden&) = delete;
  };
  static bool IsForbidden();

  void ResetAfterFork();

 private:
  static void* Main(void* self);
  void Run();
  bool Do(uint32_t index, uint32_t work);

  std::atomic<uint32_t> work_[ipc::kMaxQueues]{};  // by slot

  Mutex mutex_;  // never held around a call of a driver
  Condition changed_;
  bool running_ = false;
  bool requested_ = false;
  uint64_t begun_ = 0;  // rounds over all queues
  uint64_t done_ = 0;
};

}  // namespace xsched::preempt
