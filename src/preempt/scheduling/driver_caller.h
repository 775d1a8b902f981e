// The thread that calls drivers. Any call into a driver may block for as long as the device works, or
// forever. So the agent, which gives things back, never makes one, and leaves them to this thread. Nothing
// waits for this thread. If it hangs, queues are not queried any more, and the scheduler only has what
// devices report themselves.
//
// Gates are opened by other threads (gate_openers.h).
//
// There is one per process, started when it is first needed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "ipc/control_block.h"
#include "preempt/queue/urgencies.h"
#include "preempt/scheduling/gate_openers.h"

namespace xsched::preempt {

class DriverCaller final : public DriverRequests {
 public:
  constexpr DriverCaller(XQueueTable& queues, Urgencies& urgencies, const ProcessState& process,
                         ThreadStart start_thread = &StartDetachedThread)
      : queues_(queues),
        urgencies_(urgencies),
        process_(process),
        start_thread_(start_thread),
        gate_openers_(queues, start_thread) {}

  // False: the thread does not run, and cannot be started.
  bool Request(uint32_t index, Work work) override;
  void AwaitUntil(TimePoint deadline) override;

  // One round of the thread over all queues: does what is requested. Returns when the next one must follow;
  // kNever: when something is requested.
  TimePoint DoRequested(TimePoint now) EXCLUDES(mutex_);

  void ResetAfterFork();

 private:
  static void* Main(void* self);
  bool EnsureThread() REQUIRES(mutex_);
  // Beside Work: the thread polls the queue again. Requests do not set it, so that none is taken for done.
  static constexpr uint32_t kPoll = 1u << 31;

  // Returns when something is requested, or at that time.
  void AwaitRequests(TimePoint next) EXCLUDES(mutex_);
  TimePoint Do(uint32_t index, uint32_t work, TimePoint now);
  TimePoint PollAgain(uint32_t index, TimePoint now);

  XQueueTable& queues_;
  Urgencies& urgencies_;
  const ProcessState& process_;
  const ThreadStart start_thread_;
  GateOpeners gate_openers_;
  std::atomic<uint32_t> work_[ipc::kMaxQueues]{};  // by slot
  TimePoint polls_since_[ipc::kMaxQueues]{};       // likewise, of the thread: since the last request

  Mutex<LockRank::kDriverRequests> mutex_;
  Condition changed_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool requested_ GUARDED_BY(mutex_) = false;
  uint64_t begun_ GUARDED_BY(mutex_) = 0;  // rounds over all queues
  uint64_t done_ GUARDED_BY(mutex_) = 0;
};

}  // namespace xsched::preempt
