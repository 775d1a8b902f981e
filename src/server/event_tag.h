// Tags that say what an event of the server's loop is about.
#pragma once

#include <cstdint>

namespace xsched::server {

enum class EventSource : uint64_t { kListener, kSocket, kDoorbell };

// `connection`: the id of the connection whose socket or doorbell it is.
constexpr uint64_t EventTag(EventSource source, uint64_t connection = 0) {
  return connection << 2 | static_cast<uint64_t>(source);
}
constexpr EventSource SourceOf(uint64_t tag) { return static_cast<EventSource>(tag & 3); }
// 0: of no connection.
constexpr uint64_t ConnectionOf(uint64_t tag) { return tag >> 2; }

}  // namespace xsched::server
