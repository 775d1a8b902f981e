// The server's only thread waits here: for descriptors, one timer, and signals. It knows
// nothing of clients, and never reads a descriptor that it watches for others.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

// The process that sent a signal, and its user. The kernel says both. They are 0 if the kernel sent the
// signal itself, and the pid is 0 if the process is in another pid namespace.
struct SignalSender {
  pid_t pid = 0;
  uid_t uid = 0;
};

class EventLoop {
 public:
  // The most events that one call of Wait returns.
  // Many, so that those who have nothing left of their share of a round are passed over quickly.
  static constexpr size_t kMaxEvents = 4096;

  // Blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD in the calling thread, and receives them from now on. Throws
  // std::runtime_error.
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Reports `events` (of epoll) of `fd` with `tag` from now on. Replaces what was watched of it before.
  // False: the system cannot watch more descriptors. REQUIRES: `tag` is not one of the two largest numbers.
  [[nodiscard]] bool Watch(int fd, uint32_t events, uint64_t tag);
  // Closing the descriptor also ends the watch, unless another process has a copy of the descriptor.
  void Unwatch(int fd) noexcept;

  // Makes Wait return at this time at the latest. kNever changes nothing. Wait may return too early once.
  void WakeAt(TimePoint time);
  // Waits for `timeout_ms` at most (-1: no limit). Returns the tags of the events, valid until the next call.
  // Throws std::runtime_error.
  std::span<const uint64_t> Wait(int timeout_ms);
  // A signal asks the server to end (SIGTERM, SIGINT).
  bool end_requested() const { return end_requested_; }
  // The sender of the last SIGHUP since the last call. nullopt: no SIGHUP has come since then.
  std::optional<SignalSender> TakeHangup() { return std::exchange(hung_up_, std::nullopt); }
  // A child of this process may have ended since the last call. At first as well: one may have ended before.
  bool TakeChildEnd() { return std::exchange(child_end_, false); }

 private:
  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd signals_;
  TimePoint timer_at_ = kNever;
  void ReadSignals();

  bool end_requested_ = false;
  std::optional<SignalSender> hung_up_;
  bool child_end_ = true;
  std::array<uint64_t, kMaxEvents> tags_;
};

}  // namespace xsched::server
