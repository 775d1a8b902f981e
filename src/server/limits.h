// Bounds on what clients can make the server hold. A user cannot use up what the others need.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace xsched::server {

inline constexpr size_t kMaxConnections = 16384;
inline constexpr size_t kMaxConnectionsOfUser = 4096;
// Connections that have not said hello yet.
inline constexpr size_t kMaxUnidentified = 1024;
inline constexpr size_t kMaxUnidentifiedOfUser = 256;
// A decision takes time in proportion to the queues of a device. Further ones run unscheduled.
inline constexpr size_t kMaxQueuesOfUser = 8192;
// Devices whose time slices an agent may leave unread; far more than a process has.
inline constexpr size_t kMaxUnsentSlices = 1024;
// Pings that an agent may send without reading the answers to former ones.
inline constexpr int kMaxUnansweredPings = 8;

inline constexpr Duration kHelloTimeout = std::chrono::seconds(5);
// How long a tool may leave its answer unread.
inline constexpr Duration kUnreadTimeout = std::chrono::seconds(5);
// A client's stream must not hold up the others: so many messages per round.
inline constexpr int kMaxMessagesPerRound = 64;

}  // namespace xsched::server
