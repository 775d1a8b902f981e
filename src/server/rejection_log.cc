#include "server/rejection_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace xsched::server {
namespace {

constexpr Duration kLogEvery = std::chrono::seconds(1);

}  // namespace

void RejectionLog::Add(const Peer& peer, const char* reason, TimePoint now) noexcept {
  ++count_;
  ++unlogged_;
  if (now < log_at_) return;
  log_at_ = now + kLogEvery;
  try {
    spdlog::warn("closed the connection of pid {} (user {}): {}{}", peer.pid, peer.uid, reason,
                 unlogged_ > 1 ? fmt::format(" ({} more closed before)", unlogged_ - 1) : "");
  } catch (const std::exception&) {
    return;  // there is no memory; the next line counts this one as well
  }
  unlogged_ = 0;
}

}  // namespace xsched::server
