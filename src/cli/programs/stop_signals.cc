#include "cli/programs/stop_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace xsched::cli {

StopSignals::StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  sigprocmask(SIG_BLOCK, &set, &before_);
  fd_.Reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

StopSignals::~StopSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool StopSignals::Take() const {
  signalfd_siginfo info;
  return read(fd_.get(), &info, sizeof info) == sizeof info;
}

void StopSignals::Sleep(std::chrono::milliseconds time) const {
  pollfd signal{fd_.get(), POLLIN, 0};
  if (poll(&signal, 1, static_cast<int>(time.count())) > 0) throw Interrupted();
}

}  // namespace xsched::cli
