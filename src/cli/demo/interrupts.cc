#include "cli/demo/interrupts.h"

#include <unistd.h>

namespace xsched::cli {

Interrupts::Interrupts() {
  sigemptyset(&held_);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
  }
  sigprocmask(SIG_BLOCK, &held_, &before_);
}

// Signals that came meanwhile take effect here.
Interrupts::~Interrupts() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void Interrupts::Sleep(std::chrono::milliseconds time) const {
  timespec timeout{time.count() / 1000, time.count() % 1000 * 1'000'000};
  int signal = sigtimedwait(&held_, nullptr, &timeout);
  if (signal < 0) return;
  // The signal was consumed. Send it again, so that it takes effect in the destructor.
  kill(getpid(), signal);
  throw Interrupted();
}

}  // namespace xsched::cli
