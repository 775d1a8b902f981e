// Counts and logs connections that were closed because of what their client did. It writes at most one line
// per second, and never fails.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "server/access.h"

namespace xsched::server {

class RejectionLog {
 public:
  void Add(const Peer& peer, const char* reason, TimePoint now) noexcept;
  uint64_t count() const { return count_; }

 private:
  uint64_t count_ = 0;
  uint64_t unlogged_ = 0;
  TimePoint log_at_{};  // no line before this time
};

}  // namespace xsched::server
