// SIGTERM and SIGINT, as a descriptor. Make it before any thread, which would get them otherwise.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/fd.h"

namespace xsched::kubernetes {

class EndSignals {
 public:
  EndSignals() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    fd_.Reset(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int fd() const { return fd_.get(); }
  bool HaveCome() const {
    pollfd ready{fd_.get(), POLLIN, 0};
    return poll(&ready, 1, 0) != 0;
  }

 private:
  UniqueFd fd_;
};

}  // namespace xsched::kubernetes
