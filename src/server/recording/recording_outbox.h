// What one tool that records is still to be sent, in its order. Events beyond a limit are dropped and
// counted, and the tool is told how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

#include "base/clock.h"
#include "server/connection.h"
#include "server/recording/recorded_event.h"
#include "server/sent.h"
#include "server/work_budget.h"

namespace xsched::server {

class RecordingOutbox {
 public:
  // `began`: when the recording did. `dropped` counts what all tools lost.
  RecordingOutbox(TimePoint began, uint64_t& dropped) : began_(began), dropped_(dropped) {}

  // The recording ends when everything has been sent.
  void End() { ends_ = true; }
  bool ends() const { return ends_; }
  // False: an event must be dropped. What a recording puts at its end is bounded by the number of queues.
  bool HasRoom() const;
  // A RecordedEvent, or what it may be.
  void Put(const auto& event) { unsent_.emplace_back(event); }
  void Drop(uint64_t events);
  // If events were dropped, says so.
  void PutLoss(TimePoint now);
  // Between events, in their order. False: the tool asks on and reads nothing.
  [[nodiscard]] bool PutReply(XResult result, uint64_t count, const char* text);
  // The recording's last message.
  void PutLastReply(uint64_t count);
  bool empty() const { return unsent_.empty(); }
  // Since the recording began.
  uint64_t dropped() const { return dropped_here_; }

  // Sends as much as the tool's buffer and its user's share of the round take. refill() is called when
  // everything has been sent, and may put more. False: there is no more.
  Sent Send(Connection& tool, WorkBudget& work, const std::function<bool()>& refill, TimePoint now);
  // The last Send has left something.
  bool blocked() const { return blocked_; }
  // Since then the tool has taken nothing. REQUIRES: blocked().
  TimePoint blocked_since() const { return blocked_since_; }

 private:
  std::deque<RecordedEvent> unsent_;
  const TimePoint began_;
  uint64_t& dropped_;
  uint64_t dropped_here_ = 0;
  uint64_t untold_ = 0;  // that many were dropped since the last PutLoss
  bool ends_ = false;
  bool blocked_ = false;
  TimePoint blocked_since_{};
};

}  // namespace xsched::server
