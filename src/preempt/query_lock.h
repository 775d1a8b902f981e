// A query of a stream spoils a capture that begins on it at the same time. The agent queries under this lock,
// and the shim begins captures under it.
#pragma once

#include "preempt/hal.h"

namespace xsched::preempt {

class QueryLock {
 public:
  QueryLock() { Lock(); }
  ~QueryLock() { Unlock(); }
  QueryLock(const QueryLock&) = delete;
  QueryLock& operator=(const QueryLock&) = delete;

 private:
  XSCHED_PRIVATE static void Lock();
  XSCHED_PRIVATE static void Unlock();
};

}  // namespace xsched::preempt
