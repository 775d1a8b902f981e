// How far an answer of several messages has come, which is sent in parts.
#pragma once

#include <cstdint>

namespace xsched::server {

enum class Sent : uint8_t {
  kAll,
  kRestLater,  // the socket is full, or the round's part has been sent
  kFailed,     // the connection is broken
};

}  // namespace xsched::server
