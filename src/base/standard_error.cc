#include "base/standard_error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/no_cancellation.h"

namespace xsched {

void WriteToStandardError(const char* text, size_t size) {
  const NoCancellation with_what_the_caller_holds;
  const int program_errno = errno;
  // Never block on a full pipe without a reader: this thread may be the one that opens gates for all others.
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 0) {
    sigset_t pipe, pending, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    // The signal is this thread's, and stays pending while it is blocked. One that was pending before is the
    // program's, and the two are one.
    if (write(STDERR_FILENO, text, size) < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
      const timespec now{};
      while (sigtimedwait(&pipe, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  errno = program_errno;
}

}  // namespace xsched
