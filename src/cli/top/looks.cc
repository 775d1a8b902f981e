#include "cli/top/looks.h"

#include "cli/exit_codes.h"

namespace xsched::cli {

Looks::Looks(Duration delay) : recent_(kParts, delay) {
  before_ = server_.List();
  status_ = server_.Status();
  queues_ = RatesBetween({}, before_, 0);
  looked_ = MonotonicClock::now();
  LookBack(looked_, kParts * delay);
}

void Looks::Look() {
  const TimePoint now = MonotonicClock::now();
  std::vector<ipc::QueueInfo> seen = server_.List();
  status_ = server_.Status();
  queues_ = RatesBetween(before_, seen, InSeconds(now - looked_));
  before_ = std::move(seen);
  LookBack(now, now - looked_);
  looked_ = now;
}

void Looks::LookBack(TimePoint now, Duration span) {
  if (!server_.IsAtLeast(kMinorOfHistory)) return;
  recent_.BeginLook(now, span);
  try {
    server_.GetLast(span, [this](const ipc::Packet& packet) { recent_.Take(packet); });
  } catch (const CommandError& error) {
    // The user makes too many recordings already. The rest can be shown.
    if (error.code != kExitNotPermitted) throw;
  }
}

}  // namespace xsched::cli
