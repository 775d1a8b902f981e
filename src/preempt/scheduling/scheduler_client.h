// The scheduler of this process's queues, as the agent uses it: xserver (server_client.h), or a policy in
// this process (local_client.h). Nothing here ever waits. Not thread-safe: the agent locks. Time is passed
// in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

class SchedulerClient {
 public:
  // True if the scheduler schedules this process's queues.
  virtual bool connected() const = 0;
  virtual void Stop() = 0;

  // ---- changes; REQUIRES: connected ----

  // Each returns false if the scheduler cannot be reached any more. Then it is not connected any more.
  virtual bool QueueCreated(const XQueue& queue) = 0;
  virtual bool QueueDestroyed(const XQueue& queue) = 0;
  virtual bool Hints(const XQueue& queue) = 0;
  virtual bool Config(const XQueue& queue) = 0;
  virtual bool Absent(const XQueue& queue) = 0;
  virtual bool Timeslice(int64_t timeslice_us) = 0;
  virtual bool AtATime(size_t queues) = 0;
  // The process works together with others that say the same number (ipc/job.h).
  virtual bool JoinJob(uint64_t number) = 0;
  // Applies these changes. True: the agent's thread has something to do.
  virtual bool Commit(TimePoint now) = 0;

  // ---- the agent's thread ----
  // What to poll; -1: nothing.
  virtual int fd() const = 0;
  virtual short events() const = 0;
  enum class News { kNone, kWelcomed, kLost };
  // Handles what has arrived.
  virtual News Serve(TimePoint now) = 0;
  // Call it after Serve. Checks whether the scheduler is alive if something of this process is `taken`.
  // False: it hangs, and the process has left it.
  virtual bool Beat(bool taken, TimePoint now) = 0;
  // Connects anew, if it is time to.
  virtual void ConnectIfDue(TimePoint now) = 0;
  // When to be called again, at the latest.
  virtual TimePoint wake_at() const = 0;

 protected:
  ~SchedulerClient() = default;
};

}  // namespace xsched::preempt
