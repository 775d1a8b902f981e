// Ctrl-C and similar signals as a descriptor that can be waited for, so that a command ends in order.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

namespace xsched::cli {

class StopSignals {
 public:
  StopSignals() {
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
  ~StopSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }
  // True if one has come since the last call.
  bool Take() const {
    signalfd_siginfo info;
    return read(fd_.get(), &info, sizeof info) == sizeof info;
  }

 private:
  UniqueFd fd_;
  sigset_t before_{};
};

}  // namespace xsched::cli
