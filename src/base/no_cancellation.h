// A thread of the program may be canceled (pthread_cancel) wherever it waits, and then nothing that it holds
// of ours is given back: our code has no exceptions, so its stack unwinds without our destructors. So while a
// thread waits in our code, or has counted something that its end must undo, it cannot be canceled. A
// pending cancellation acts at the program's next such point.
#pragma once

#include <pthread.h>

namespace xsched {

class [[nodiscard]] NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace xsched
