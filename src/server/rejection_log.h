// Counts the connections that were closed because of what their client did, and logs them: one line per
// second at most, however many there are. It never fails.
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
  TimePoint log_at_{};  // no line before
};

}  // namespace xsched::server
