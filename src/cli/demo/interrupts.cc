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

// What came meanwhile takes effect here.
Interrupts::~Interrupts() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void Interrupts::Sleep(std::chrono::milliseconds time) const {
  timespec timeout{time.count() / 1000, time.count() % 1000 * 1'000'000};
  int signal = sigtimedwait(&held_, nullptr, &timeout);
  if (signal < 0) return;
  // Taken; it must be pending again when the destructor lets it through.
  kill(getpid(), signal);
  throw Interrupted();
}

}  // namespace xsched::cli
