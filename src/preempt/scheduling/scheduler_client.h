// Who schedules the queues of this process, as the agent sees it: xserver (server_client.h), or a policy in
// this process (local_client.h). Nothing here ever waits. Not thread-safe: the agent locks. Time comes in
// from outside.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

class SchedulerClient {
 public:
  // Is the scheduler in charge?
  virtual bool connected() const = 0;
  virtual void Stop() = 0;

  // ---- what has changed; REQUIRES: connected ----
  // Each: false when nothing more can be said to the scheduler, which is then not in charge any more.
  virtual bool QueueCreated(const XQueue& queue) = 0;
  virtual bool QueueDestroyed(const XQueue& queue) = 0;
  virtual bool Hints(const XQueue& queue) = 0;
  virtual bool Config(const XQueue& queue) = 0;
  virtual bool Absent(const XQueue& queue) = 0;
  virtual bool Timeslice(int64_t timeslice_us) = 0;
  // Acts on these changes. True: the agent's thread has something to do.
  virtual bool Commit(TimePoint now) = 0;

  // ---- the agent's thread ----
  // What to poll; -1: nothing.
  virtual int fd() const = 0;
  virtual short events() const = 0;
  enum class News { kNone, kWelcomed, kLost };
  // Acts on what has come meanwhile.
  virtual News Serve(TimePoint now) = 0;
  // To be called after Serve. Something of this process is taken, or nothing: does the scheduler live? False:
  // it hangs, and has been left.
  virtual bool Beat(bool taken, TimePoint now) = 0;
  // Connects anew, if it is time to.
  virtual void ConnectIfDue(TimePoint now) = 0;
  // When to be called again, at the latest.
  virtual TimePoint wake_at() const = 0;

 protected:
  ~SchedulerClient() = default;
};

}  // namespace xsched::preempt
