// What the server's one thread sleeps on: descriptors, one timer, and the signals that end it. It knows
// nothing of clients, and never reads a descriptor that it watches for somebody.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

class EventLoop {
 public:
  // Events that one call of Wait returns at most.
  static constexpr size_t kMaxEvents = 256;

  // Blocks SIGTERM, SIGINT and SIGHUP in the calling thread: from now on they come here. Throws
  // std::runtime_error.
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Reports `events` (of epoll) of `fd` with `tag` from now on, in the place of what was watched of it
  // before. False: the system watches no more descriptors. REQUIRES: `tag` is not one of the two largest
  // numbers.
  [[nodiscard]] bool Watch(int fd, uint32_t events, uint64_t tag);
  // The watch goes with its descriptor, unless another process has a copy of that.
  void Unwatch(int fd) noexcept;

  // Makes Wait return at this time at the latest; kNever changes nothing. It may return too early once.
  void WakeAt(TimePoint time);
  // Waits for `timeout_ms` at most (-1: for ever). Returns the tags of what has happened, valid until the
  // next call. Throws std::runtime_error.
  std::span<const uint64_t> Wait(int timeout_ms);
  // A signal asks the server to end.
  bool end_requested() const { return end_requested_; }

 private:
  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd signals_;
  TimePoint timer_at_ = kNever;
  bool end_requested_ = false;
  std::array<uint64_t, kMaxEvents> tags_;
};

}  // namespace xsched::server
