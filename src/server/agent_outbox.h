// Time slices and answers to pings that an agent must get, although its buffer may have no room for them now
// because its process is stopped. Only the last slice of each device and the last answer are kept, so the
// size is bounded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ipc/messages.h"

namespace xsched::server {

struct Connection;

class AgentOutbox {
 public:
  bool empty() const { return !pong_ && slices_.empty(); }

  // These two send at once if nothing older waits and there is room, and keep the message otherwise. False:
  // the agent leaves too much unread.
  // Throws std::bad_alloc.
  bool SendSlice(Connection& connection, const ipc::ProcessSlice& slice);
  bool SendPong(Connection& connection, uint64_t cookie);
  // Sends what was kept. False: there was no room for all of it.
  bool SendKept(Connection& connection);

 private:
  bool SendKeptSlices(Connection& connection);
  bool SendKeptPong(Connection& connection);

  std::map<uint64_t, uint64_t> slices_;  // in µs, by device
  std::optional<uint64_t> pong_;         // the cookie of the last ping that was not answered
  int unanswered_pings_ = 0;
};

}  // namespace xsched::server
