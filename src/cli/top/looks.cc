#include "cli/top/looks.h"

#include "cli/exit_codes.h"

namespace xsched::cli {

Looks::Looks(Duration delay) : recent_(kParts, delay) {
  LookAtQueues(0);
  LookAtAccounts(0);
  status_ = server_.Status();
  looked_ = MonotonicClock::now();
  LookBack(looked_, kParts * delay);
}

void Looks::Look() {
  const TimePoint now = MonotonicClock::now();
  LookAtQueues(InSeconds(now - looked_));
  LookAtAccounts(InSeconds(now - looked_));
  status_ = server_.Status();
  LookBack(now, now - looked_);
  looked_ = now;
}

void Looks::LookAtQueues(double seconds) {
  std::vector<ipc::QueueInfo> seen = server_.List();
  queues_ = RatesBetween(queues_before_, seen, seconds);
  queues_before_ = std::move(seen);
}

void Looks::LookAtAccounts(double seconds) {
  std::vector<ipc::Usage> seen =
      server_.IsAtLeast(kMinorOfAccounts) ? server_.Usage() : AccountsOf(queues_before_);
  accounts_ = RatesBetween(accounts_before_, seen, seconds);
  accounts_before_ = std::move(seen);
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
