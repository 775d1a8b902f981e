// Notifies the service manager that started the server (systemd, Type=notify and WatchdogSec=) that it is
// ready, and regularly that its loop runs. Does nothing if there is no service manager. Never waits.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

class ServiceManager {
 public:
  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceManager();

  void Notify(const char* state) const;
  // REQUIRES: called in each round of the loop. Returns when to call it again at the latest.
  TimePoint KeepAlive(TimePoint now);

 private:
  UniqueFd socket_;
  Duration every_ = Duration::max();
  TimePoint due_ = kNever;
};

}  // namespace xsched::server
