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

class QueryLock {
 public:
  QueryLock() : locked_(Lock()) {}
  ~QueryLock() {
    if (locked_) Unlock();
  }
  // True if the lock is held. Without it, unnecessary queries are not made.
  explicit operator bool() const { return locked_; }
  QueryLock(const QueryLock&) = delete;
  QueryLock& operator=(const QueryLock&) = delete;

 private:
  XSCHED_PRIVATE static bool Lock();
  XSCHED_PRIVATE static void Unlock();

  bool locked_;
};

class CaptureLock {
 public:
  CaptureLock() : locked_(Lock()) {}
  ~CaptureLock() {
    if (locked_) Unlock();
  }
  // False: the call is made without it.
  explicit operator bool() const { return locked_; }
  CaptureLock(const CaptureLock&) = delete;
  CaptureLock& operator=(const CaptureLock&) = delete;

 private:
  XSCHED_PRIVATE static bool Lock();
  XSCHED_PRIVATE static void Unlock();

  bool locked_;
};

}  // namespace xsched::preempt
