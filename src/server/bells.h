// Which doorbells are listened to. A client that rings without a pause would keep a processor busy: such a
// bell is muted for a moment, and read once afterwards. Others ring as before.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "server/event_loop.h"

namespace xsched::server {

struct Agent;

// What is remembered of one bell.
struct BellState {
  TimePoint since{};  // the time in which `rings` are counted begins
  int rings = 0;
};

class Bells {
 public:
  // More rings than this, within so long, are too many. A program that launches without a pause rings some
  // thousand times a second.
  static constexpr int kMostRings = 64;
  static constexpr Duration kWithin = std::chrono::milliseconds(1);

  explicit Bells(EventLoop& loop) : loop_(loop) {}

  // Its bell is never read, so each ring is one edge. False: the system cannot watch more descriptors.
  [[nodiscard]] bool Watch(const Agent& agent);
  // It has rung. False: it is muted now. What it rang for is read when its time has come.
  bool Rings(Agent& agent, TimePoint now);
  // The bell's ring could not be handled in this round: it rings again in the next one.
  void RingAgain(const Agent& agent) { static_cast<void>(Watch(agent)); }
  // Listens again to those that were muted. Returns when to call it again.
  template <typename FindAgent>
  TimePoint Resume(TimePoint now, FindAgent&& find_agent);

 private:
  EventLoop& loop_;
  std::deque<std::pair<TimePoint, uint64_t>> muted_;  // until when, and by the connection's id
};

template <typename FindAgent>
TimePoint Bells::Resume(TimePoint now, FindAgent&& find_agent) {
  while (!muted_.empty() && now >= muted_.front().first) {
    Agent* agent = find_agent(muted_.front().second);
    muted_.pop_front();
    // Its counter is not zero, so this reports it once at least.
    if (agent != nullptr) RingAgain(*agent);
  }
  return muted_.empty() ? kNever : muted_.front().first;
}

}  // namespace xsched::server
