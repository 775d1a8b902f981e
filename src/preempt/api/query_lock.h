// A query of a stream invalidates a capture that begins on the stream, or that the stream joins, at the same
// time. So our own queries are made under a QueryLock, and the shim begins and joins captures under a
// CaptureLock. No thread has one of these while another has the other. Queries do not exclude each other: one
// that blocks in the driver must not keep other streams from reporting what they have done.
//
// A query may block in the driver as long as a launch on the same stream does. The program's calls must not
// wait for that: a thread that does not get the lock within 40 ms goes on without it. At worst, a capture
// fails, and the program sees that. The calls that begin captures put no work on the device, so they do not
// block for long.
#pragma once

#include "hal/contract.h"

namespace xsched::preempt {

// What both have in common. Only its two kinds are used.
class StreamLock {
 public:
  ~StreamLock() {
    if (locked_) Unlock(alone_);
  }
  // True if the lock is held. Without it, unnecessary queries are not made, and captures begin all the same.
  explicit operator bool() const { return locked_; }
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;

 protected:
  explicit StreamLock(bool alone) : alone_(alone), locked_(Lock(alone)) {}

 private:
  XSCHED_PRIVATE static bool Lock(bool alone);
  XSCHED_PRIVATE static void Unlock(bool alone);

  const bool alone_;
  const bool locked_;
};

class QueryLock : public StreamLock {
 public:
  QueryLock() : StreamLock(/*alone=*/false) {}
};

class CaptureLock : public StreamLock {
 public:
  CaptureLock() : StreamLock(/*alone=*/true) {}
};

}  // namespace xsched::preempt
