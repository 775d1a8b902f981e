// Closes sockets to which a client may have sent descriptors that were not received. The kernel closes those
// as well, and a socket among them may linger as long as the client wanted. A timer interrupts this, so the
// server's thread waits for a moment only.
#pragma once

#include <time.h>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

class SocketCloser {
 public:
  static constexpr Duration kLongest = std::chrono::microseconds(100);

  // It works on the thread that makes it. Throws std::runtime_error.
  SocketCloser();
  ~SocketCloser();
  SocketCloser(const SocketCloser&) = delete;
  SocketCloser& operator=(const SocketCloser&) = delete;

  // False: it was interrupted.
  bool Close(UniqueFd socket) noexcept;

 private:
  void InterruptAfter(Duration time) noexcept;

  timer_t timer_{};
};

}  // namespace xsched::server
