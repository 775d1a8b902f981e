// How far an answer of several messages has come, which is sent in parts.
#pragma once

#include <errno.h>

#include <cstdint>

namespace xsched::server {

enum class Sent : uint8_t {
  kAll,
  kRestLater,  // the socket is full, or the round's part has been sent
  kFailed,     // the connection is broken
};

// Of the message that was sent last: `sent` is what Connection::Send returned, which leaves the reason in
// errno.
inline Sent SentFrom(bool sent) {
  if (sent) return Sent::kAll;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::kRestLater : Sent::kFailed;
}

}  // namespace xsched::server
