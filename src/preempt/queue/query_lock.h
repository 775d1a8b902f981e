// A query of a stream spoils a capture that begins on it, or that it joins, at the same time. Our own queries
// are made under this lock, and the shim begins and joins captures under it: calls that put nothing on the
// device, and so do not block for long.
//
// A query may block in the driver for as long as a launch on the same stream does. The program's calls are
// not to wait for that: whoever does not get the lock within 40 ms goes on without it, and at worst a capture
// fails, which the program sees.
#pragma once

#include "hal/contract.h"

namespace xsched::preempt {

class QueryLock {
 public:
  QueryLock() : locked_(Lock()) {}
  ~QueryLock() {
    if (locked_) Unlock();
  }
  // Is it held? Who makes a query without need then does not.
  explicit operator bool() const { return locked_; }
  QueryLock(const QueryLock&) = delete;
  QueryLock& operator=(const QueryLock&) = delete;

 private:
  XSCHED_PRIVATE static bool Lock();
  XSCHED_PRIVATE static void Unlock();

  bool locked_;
};

}  // namespace xsched::preempt
