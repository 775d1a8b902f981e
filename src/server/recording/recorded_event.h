// What a tool that records is sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "base/clock.h"
#include "ipc/messages.h"

namespace xsched::server {

using RecordedEvent =
    std::variant<ipc::RecordedQueue, ipc::RecordedBurst, ipc::RecordedHold, ipc::RecordedWait,
                 ipc::RecordedSlice, ipc::RecordedTurn, ipc::RecordedMemory, ipc::RecordedInFlight,
                 ipc::RecordedEnd, ipc::RecordedLoss, ipc::Reply>;

class RecordSink {
 public:
  virtual void Put(const RecordedEvent& event) = 0;

 protected:
  ~RecordSink() = default;
};

// Times of events are nanoseconds since the recording began. What was before it was at its beginning.
inline uint64_t RecordedTime(TimePoint began, TimePoint time) {
  return static_cast<uint64_t>(std::max(time - began, Duration::zero()).count());
}

}  // namespace xsched::server
